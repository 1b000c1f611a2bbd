"""Command lines that are wrong, help, and what needs no peer."""

import json
import os

import pytest

from support import expect_error, running, wherry


@pytest.mark.parametrize(
    "words, part",
    [
        ([], "a command is required"),
        (["fly"], "unknown command 'fly'"),
        (["--frobnicate"], "unknown option '--frobnicate'"),
        (["pull", "--resume", "wherry://h:1/n"], "unknown option '--resume'"),
        (["serve", "--psk-file", "x", "mem:1k"], "unknown option '--psk-file'"),
        (["bench"], "unknown command 'bench'"),
        (["pull"], "REF"),
        (["serve"], "RANGE"),
        (["push", "only-one"], "SRC"),
        (["pull", "a", "b", "c"], "unexpected argument 'c'"),
        (["pull", "wherry://h:1/n", "--length", "1.5GiB"], "'1.5GiB'"),
        (["pull", "wherry://h:1/n", "--stall-timeout", "soon"], "'soon'"),
        (["pull", "wherry://h:1/n", "--path", "pigeon"], "'pigeon'"),
        (["serve", "mem:1k,nmae=x"], "'nmae=x'"),
        (["serve", "mem:0"], "0 bytes"),
        (["serve", "/no/such/file"], "'/no/such/file'"),
        (["serve", "mem:1k", "mem:2k"], "name 'mem'"),
    ],
)
def test_wrong_usage_exits_2_and_names_what_is_wrong(words, part):
    expect_error(wherry(*words), "invalid_argument", 2, part)


def test_wrong_usage_with_json_is_one_object():
    result = wherry("pull", "--json", "--frobnicate", "wherry://h:1/n")
    assert result.status == 2
    error = json.loads(result.stderr)["error"]
    assert error["code"] == "invalid_argument"
    assert "--frobnicate" in error["message"] and error["hint"]


@pytest.mark.parametrize("command", ["serve", "describe", "pull", "push", "doctor", "version"])
def test_help_of_every_command_has_an_example(command):
    result = wherry(command, "--help")
    assert result.status == 0 and result.stderr == b""
    assert f"Example:\n  wherry {command}" in result.stdout.decode()


def test_help_lists_the_commands_that_are_there_and_no_other():
    text = wherry("--help").stdout.decode()
    listed = [
        line.split()[0] for line in text.split("Subcommands:")[1].splitlines() if line.strip()
    ]
    assert listed == ["serve", "describe", "pull", "push", "doctor", "version"]


def test_version():
    result = wherry("version", "--json")
    document = result.json()
    assert result.status == 0
    assert document["version"] and document["commit"] and document["protocol"] >= 1
    assert "tcp" in document["build"]["paths"]
    assert document["version"] in wherry("version").stdout.decode()


def test_R1_doctor_answers_four_questions_and_does_not_ask_ready():
    result = wherry("doctor", "--json")
    assert result.status == 0
    paths = {path["path"]: path for path in result.json()["paths"]}
    assert paths["tcp"]["built"]["answer"] == "yes"
    for path in paths.values():
        for question in ("built", "loadable", "discovered"):
            fact = path[question]
            assert fact["answer"] in ("yes", "no", "not asked")
            assert fact["answer"] != "no" or fact["reason"], path
        assert path["ready"]["answer"] == "not asked"


def test_R1_doctor_requires_a_path_that_nobody_asked_for():
    expect_error(wherry("doctor", "--require", "tcp"), "unavailable", 3, "tcp", "not asked")


def test_R4_doctor_requires_a_path_that_is_not_there():
    expect_error(wherry("doctor", "--require", "gds"), "unavailable", 3, "gds")


def test_a_full_disk_under_standard_output_is_told():
    with open("/dev/full", "wb") as full:
        result = wherry("version", stdout=full)
    assert result.status == 1
    assert b"wherry: io_error: standard output: No space left on device" in result.stderr


def test_a_closed_pipe_is_told_and_kills_nobody():
    reader, writer = os.pipe()
    os.close(reader)
    with running("version", stdout=writer) as process:
        os.close(writer)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"wherry: io_error: standard output: Broken pipe" in stderr


def test_a_name_on_the_command_line_cannot_draw_on_the_terminal():
    result = wherry("serve", b"mem:1k,\x1b[2J\nx")
    assert result.status == 2
    assert b"\x1b" not in result.stderr and b"\\x1b[2J\\nx" in result.stderr

"""Reading ranges into files and to standard output, and every name and file that is in the way."""

import hashlib
import json
import os
import pty
import random
import resource
import select
import time

import pytest

from support import TIMEOUT_S, expect_error, running, tree, wherry


def filled(directory, sizes):
    """Files of these sizes with content of their own; returns name to content."""
    generator = random.Random(7)
    contents = {}
    for name, size in sizes.items():
        path = os.path.join(os.fsencode(directory), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        contents[name] = generator.randbytes(size)
        with open(path, "wb") as file:
            file.write(contents[name])
    return contents


SIZES = {
    b"one": 1,
    b"sub/deep/er": 4096,
    b"new\nline": 100,
    b"sp ace": 101,
    "日本/🚢".encode(): 102,
    b"\xff\xfe": 103,
    b"-dash": 104,
    b"com,ma": 105,
    b".hidden": 106,
    b"big": 20 * 2**20 + 13,
    b"x" * 250: 107,
}


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--verify"],
        ["--no-checksum", "--no-sync"],
        ["--jobs", "1", "--lanes", "1"],
        ["--jobs", "16", "--lanes", "8", "--verify"],
    ],
    ids=" ".join,
)
def test_a_directory_comes_over_whole(serve, tmp_path, options):
    contents = filled(tmp_path / "source", SIZES)
    owner = serve(tmp_path / "source")
    result = wherry("pull", *options, owner.reference, tmp_path / "copy")
    assert result.status == 0, result
    assert tree(tmp_path / "copy") == contents
    assert f"pulled {len(SIZES)} files" in result.text


def test_empty_files_come_over(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"empty": 0, b"sub/empty": 0, b"full": 9})
    owner = serve(tmp_path / "source")
    result = wherry("pull", "--verify", owner.reference, tmp_path / "copy")
    assert result.status == 0, result
    assert tree(tmp_path / "copy") == contents


def test_many_small_files_come_over(serve, tmp_path):
    contents = filled(
        tmp_path / "source", {b"%d/%d" % (i % 7, i): i % 300 + 1 for i in range(1500)}
    )
    owner = serve(tmp_path / "source")
    result = wherry("pull", "--no-sync", "--json", owner.reference, tmp_path / "copy")
    assert result.status == 0, result
    document = result.json()
    assert document["files"] == document["completed"] == 1500 and document["failed"] == []
    assert document["bytes"] == sum(map(len, contents.values()))
    assert tree(tmp_path / "copy") == contents


def test_the_name_here_is_the_sources_or_the_ranges(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"a": 10, b"sub/b": 20})
    owner = serve(tmp_path / "source", "--name", "weights")
    here = tmp_path / "here"
    here.mkdir()
    assert wherry("pull", owner.reference, cwd=here).status == 0
    assert wherry("pull", "--range", "sub/b", owner.reference, cwd=here).status == 0
    assert tree(here) == {
        b"weights/a": contents[b"a"],
        b"weights/sub/b": contents[b"sub/b"],
        b"sub/b": contents[b"sub/b"],
    }


def test_one_range_goes_to_a_file_or_into_a_directory(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"sub/b": 20})
    owner = serve(tmp_path / "source")
    pull = ["pull", "--range", "sub/b", owner.reference]
    assert wherry(*pull, tmp_path / "file").status == 0
    (tmp_path / "existing").mkdir()
    assert wherry(*pull, tmp_path / "existing").status == 0
    assert wherry(*pull, f"{tmp_path}/new/").status == 0
    assert (tmp_path / "file").read_bytes() == contents[b"sub/b"]
    assert tree(tmp_path / "existing") == tree(tmp_path / "new") == contents


def test_ranges_are_chosen_by_names_and_globs(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"a1": 1, b"a2": 2, b"b": 3, b"a/x": 4, b"[odd]": 5})
    owner = serve(tmp_path / "source")
    result = wherry(
        "pull",
        "--range",
        "a?",
        "--range",
        "[odd]",
        "--range",
        "a1",
        owner.reference,
        tmp_path / "copy",
    )
    assert result.status == 0, result
    assert tree(tmp_path / "copy") == {name: contents[name] for name in (b"a1", b"a2", b"[odd]")}
    expect_error(
        wherry("pull", "--range", "z*", owner.reference, tmp_path / "none"), "not_found", 4, "'z*'"
    )
    expect_error(
        wherry("pull", "--range", "zz", owner.reference, tmp_path / "none"), "not_found", 4, "zz"
    )
    assert not (tmp_path / "none").exists()


def test_a_part_of_a_range(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"a": 10_000})
    owner = serve(tmp_path / "source")
    part = ["pull", "--verify", "--range", "a", "--offset", "1000", owner.reference]
    assert wherry(*part, "--length", "2k", tmp_path / "part").status == 0
    assert (tmp_path / "part").read_bytes() == contents[b"a"][1000:3000]
    assert wherry(*part, tmp_path / "rest").status == 0
    assert (tmp_path / "rest").read_bytes() == contents[b"a"][1000:]
    expect_error(
        wherry(*part, "--length", "9001", tmp_path / "x"), "out_of_range", 4, "10000 bytes", "9001"
    )
    assert not (tmp_path / "x").exists()


def test_a_part_needs_one_range(serve, tmp_path):
    filled(tmp_path / "source", {b"a": 1, b"b": 1})
    owner = serve(tmp_path / "source")
    expect_error(
        wherry("pull", "--offset", "1", owner.reference, tmp_path / "x"),
        "invalid_argument",
        2,
        "2 are selected",
    )
    expect_error(
        wherry("pull", owner.reference, "-"),
        "invalid_argument",
        2,
        "standard output",
        "2 are selected",
    )
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("size", [1, 4 * 2**20, 4 * 2**20 + 1, 30 * 2**20 + 7])
def test_standard_output_gets_the_bytes_in_order(serve, tmp_path, size):
    contents = filled(tmp_path / "source", {b"a": size})
    owner = serve(tmp_path / "source")
    result = wherry("pull", "--verify", owner.reference, "-")
    assert result.status == 0, result
    assert hashlib.sha256(result.stdout).digest() == hashlib.sha256(contents[b"a"]).digest()


def test_json_stays_out_of_the_way_of_bytes(serve):
    owner = serve("mem:100k,fill=random:7,name=a")
    result = wherry("pull", "--json", "--verify", owner.reference, "-")
    assert result.status == 0 and len(result.stdout) == 100_000
    document = json.loads(result.stderr)
    assert document["bytes"] == 100_000 and document["verified"] and document["dest"] == "-"


def test_a_closed_pipe_ends_a_pull(serve):
    owner = serve("mem:256MiB,name=a")
    with running("pull", owner.reference, "-") as process:
        assert process.stdout.read(1) == b"\0"
        process.stdout.close()
        process.stdout = None
        assert process.wait(TIMEOUT_S) == 1
        assert b"io_error: 'a': standard output: Broken pipe" in process.stderr.read()


def test_an_existing_file_is_kept_unless_it_may_be_overwritten(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"a": 10, b"b": 20})
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "b").write_bytes(b"precious")
    owner = serve(tmp_path / "source")
    expect_error(
        wherry("pull", owner.reference, tmp_path / "copy"),
        "invalid_argument",
        2,
        "copy/b",
        "exists",
    )
    assert tree(tmp_path / "copy") == {b"b": b"precious"}, "refused before a byte moved"
    assert wherry("pull", "--overwrite", owner.reference, tmp_path / "copy").status == 0
    assert tree(tmp_path / "copy") == contents


def test_overwrite_replaces_a_link_and_not_what_it_points_to(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"a": 10})
    (tmp_path / "precious").write_bytes(b"keep")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a").symlink_to("../precious")
    owner = serve(tmp_path / "source")
    assert wherry("pull", "--overwrite", owner.reference, tmp_path / "copy").status == 0
    assert (tmp_path / "precious").read_bytes() == b"keep"
    assert not (tmp_path / "copy" / "a").is_symlink()
    assert tree(tmp_path / "copy") == contents


@pytest.mark.parametrize("target", ["directory", "device"])
def test_overwrite_replaces_nothing_but_files(serve, tmp_path, target):
    owner = serve("mem:1k,name=a")
    (tmp_path / "directory" / "a").mkdir(parents=True)
    dest = {"directory": tmp_path / "directory", "device": "/dev/null"}[target]
    result = wherry("pull", "--overwrite", "--range", "a", owner.reference, dest)
    expect_error(result, "invalid_argument", 2, "exists and is no file")


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/tmp/evil", "a//b", "a/", ".", "..", "a/./b", "/"]
)
def test_R42_no_name_leads_out_of_the_destination(serve, tmp_path, name):
    (tmp_path / "file").write_bytes(b"x")
    owner = serve(tmp_path / "file", f"{tmp_path}/file,name={name}")
    (tmp_path / "in").mkdir()
    result = wherry("pull", owner.reference, tmp_path / "in" / "copy")
    expect_error(result, "invalid_argument", 2, f"'{name}'")
    assert tree(tmp_path / "in") == {}, "refused before a file was made"
    # Pulled alone, to a name that is the user's own, it is as good as any other.
    result = wherry("pull", "--range", name, owner.reference, tmp_path / "in" / "safe")
    assert result.status == 0, result
    assert tree(tmp_path / "in") == {b"safe": b"x"}


def test_R42_names_that_need_the_same_place_are_refused(serve, tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    owner = serve(*[f"{tmp_path}/file,name={name}" for name in ("a", "a/b", "c", "c.wherry-part")])
    result = wherry("pull", owner.reference, tmp_path / "copy")
    expect_error(result, "invalid_argument", 2, "'a'", "'a/b'", "'c.wherry-part'")
    assert not (tmp_path / "copy").exists()


def test_R42_links_inside_the_destination_are_not_followed(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"sub/a": 10, b"b": 5})
    (tmp_path / "outside").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "sub").symlink_to(tmp_path / "outside")
    owner = serve(tmp_path / "source")
    result = wherry("pull", owner.reference, tmp_path / "copy")
    expect_error(result, "invalid_argument", 2, "sub")
    assert tree(tmp_path / "outside") == {}
    assert (tmp_path / "copy" / "b").read_bytes() == contents[
        b"b"
    ], "the others are not stopped by it"


def test_one_file_that_fails_does_not_stop_the_others(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"%02d" % i: 1000 for i in range(40)})
    owner = serve(tmp_path / "source")
    os.utime(tmp_path / "source" / "07", ns=(1, 1))
    result = wherry("pull", "--json", owner.reference, tmp_path / "copy")
    assert result.status == 4, result
    document = result.json()
    assert document["completed"] == 39
    assert [(failed["name"], failed["error"]["code"]) for failed in document["failed"]] == [
        ("07", "range_changed")
    ]
    del contents[b"07"]
    assert tree(tmp_path / "copy") == contents


def test_fail_fast_stops_at_the_first(serve, tmp_path):
    filled(tmp_path / "source", {b"%02d" % i: 9 * 2**20 for i in range(12)})
    owner = serve(tmp_path / "source")
    for i in range(12):
        os.utime(tmp_path / "source" / f"{i:02}", ns=(1, 1))
    result = wherry(
        "pull", "--json", "--fail-fast", "--jobs", "1", owner.reference, tmp_path / "copy"
    )
    assert result.status == 4, result
    assert len(result.json()["failed"]) == 1
    assert tree(tmp_path / "copy") == {}


def test_R23_a_file_that_changed_is_not_served(serve, tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 1000)
    owner = serve(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"y" * 1001)
    result = wherry("pull", "--range", "a", owner.reference, tmp_path / "copy")
    expect_error(result, "range_changed", 4, "'a'")
    assert not (tmp_path / "copy").exists() and not (tmp_path / "copy.wherry-part").exists()


def test_a_file_that_does_not_fit_is_told_before_it_is_filled(serve, tmp_path):
    owner = serve("mem:64MiB,name=a")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))

    result = wherry("pull", owner.reference, tmp_path / "copy", preexec_fn=limit)
    expect_error(result, "io_error", 1, "no room for 64 MiB", "File too large")
    assert tree(tmp_path / "copy") == {}


def test_dry_run_makes_nothing(serve, tmp_path):
    filled(tmp_path / "source", {b"a": 10, b"sub/b": 20})
    owner = serve(tmp_path / "source")
    result = wherry("pull", "--dry-run", "--json", owner.reference, tmp_path / "copy")
    assert result.status == 0, result
    assert {file["name"]: file["path"] for file in result.json()["files"]} == {
        "a": f"{tmp_path}/copy/a",
        "sub/b": f"{tmp_path}/copy/sub/b",
    }
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("dest", ["no/such/copy", "file/copy"])
def test_a_destination_without_a_parent_exits_2(serve, tmp_path, dest):
    (tmp_path / "file").write_bytes(b"x")
    owner = serve("mem:1k,name=a")
    result = wherry("pull", owner.reference, tmp_path / dest)
    assert result.status in (1, 2), result
    assert dest in result.text


def test_an_unknown_path_kind_is_not_replaced_by_another(serve, tmp_path):
    owner = serve("mem:1k,name=a")
    expect_error(
        wherry("pull", "--path", "rdma", owner.reference, tmp_path / "x"), "unavailable", 3, "rdma"
    )
    assert not (tmp_path / "x").exists()
    assert wherry("pull", "--path", "tcp", owner.reference, tmp_path / "x").status == 0


def test_progress_is_lines_where_it_is_no_terminal(serve, tmp_path):
    owner = serve("mem:64MiB,name=a")
    quiet = wherry("pull", owner.reference, tmp_path / "quiet")
    assert "%" not in quiet.text and b"\r" not in quiet.stderr
    result = wherry("pull", "--progress", owner.reference, tmp_path / "copy")
    assert result.status == 0 and "100%" in result.text and b"\r" not in result.stderr, result


def test_progress_on_a_terminal_is_drawn_over_and_ends_its_line(serve, tmp_path):
    owner = serve("mem:64MiB,name=a")
    controller, terminal = pty.openpty()
    with running(
        "pull", "--progress", owner.reference, tmp_path / "copy", stderr=terminal
    ) as process:
        os.close(terminal)
        said = b""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end and select.select([controller], [], [], TIMEOUT_S)[0]:
            try:
                data = os.read(controller, 4096)
            except OSError:  # the terminal has no writer any more
                break
            said += data
        assert process.wait(TIMEOUT_S) == 0
    os.close(controller)
    assert b"100%" in said and b"\x1b" not in said
    drawn = said.split(b"\r\n")[0].split(b"\r")
    percents = [int(line.split(b"%")[0]) for line in drawn if b"%" in line]
    assert percents == sorted(percents), "it never moves back"


def test_json_progress_is_one_object_a_line(serve, tmp_path):
    owner = serve("mem:64MiB,name=a")
    result = wherry("pull", "--progress", "--json", owner.reference, tmp_path / "copy")
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert events and all(event["event"] == "progress" for event in events)
    assert events[-1]["bytes"] == events[-1]["total_bytes"] == 64 * 2**20


def test_R43_a_process_with_few_descriptors_still_gets_on(serve, tmp_path):
    contents = filled(tmp_path / "source", {b"%d" % i: i + 1 for i in range(400)})

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    owner = serve(tmp_path / "source", preexec_fn=limit)
    pull = ["pull", "--no-sync", "--jobs", "8", owner.reference, tmp_path / "copy"]
    result = wherry(*pull, preexec_fn=limit)
    assert result.status == 0, result
    assert tree(tmp_path / "copy") == contents

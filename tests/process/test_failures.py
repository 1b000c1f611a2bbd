"""Owners that die or stand still in the middle, signals, time limits: what is said and what is left.

"The middle" is seen, not guessed: the command reports progress, and the test acts on the first
report that shows some bytes but not all.
"""

import os
import shutil
import signal
import tempfile
import threading
import time

import pytest

from support import expect_error, finish, peer, running, sparse_file, tree, wait_in_the_middle, wherry

BIG = "mem:2GiB,name=big"
BIG_BYTES = 2 * 2**30


def pulling(owner, dest, *options):
    return running("pull", "--json", "--progress", "--no-sync", *options, owner.reference, dest)


def tree_names(directory):
    return [os.path.join(parent, name) for parent, _, names in os.walk(directory) for name in names]


def memory_dir(tmp_path):
    """Where large files cost no disk; falls back to the disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else str(tmp_path)


@pytest.fixture
def roomy(tmp_path):
    """A directory for large files, quick and gone afterwards."""
    path = tempfile.mkdtemp(prefix="wherry-test-", dir=memory_dir(tmp_path))
    yield path
    shutil.rmtree(path)


def test_R28_an_owner_killed_in_the_middle_of_a_pull_leaves_no_file(serve, roomy):
    owner = serve(BIG)
    with pulling(owner, f"{roomy}/copy") as pull:
        wait_in_the_middle(pull)
        owner.kill()
        result = finish(pull)
    assert result.status == 9, result
    assert result.error()["code"] == "connection_lost"
    assert "0 of 1 files are complete" in result.error()["message"]
    assert tree(roomy) == {}


def test_R28_an_owner_killed_under_standard_output_ends_it_short(serve):
    owner = serve(BIG)
    with running("pull", owner.reference, "-") as pull:
        read = len(pull.stdout.read(2**20))
        owner.kill()
        while data := pull.stdout.read(2**20):
            read += len(data)
        status = pull.wait(40)
        error = pull.stderr.read().decode()
    assert status == 9, error
    assert "wherry: connection_lost: 'big'" in error
    assert 2**20 <= read < BIG_BYTES, "the pipe's back pressure kept the rest"


def test_R29_an_owner_killed_in_the_middle_of_a_push_is_uncertain(serve, roomy):
    owner = serve(BIG + ",access=write")
    source = sparse_file(f"{roomy}/source", BIG_BYTES)
    with running("push", "--json", "--progress", "--range", "big", source, owner.reference) as push:
        wait_in_the_middle(push)
        owner.kill()
        result = finish(push)
    assert result.status == 6, result
    assert result.error()["code"] == "connection_lost"
    assert "may have changed" in result.error()["message"]
    file = result.json()["files"][0]
    assert file["remote_effect"] == "uncertain" and file["confirmed_bytes"] < BIG_BYTES


def test_R36_an_owner_that_stands_still_is_given_up(serve, roomy):
    owner = serve(BIG)
    with pulling(owner, f"{roomy}/copy", "--stall-timeout", "1") as pull:
        wait_in_the_middle(pull)
        owner.process.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        result = finish(pull)
        assert time.monotonic() - started < 8
    assert result.status == 9, result
    assert result.error()["code"] == "stalled" and "1 s" in result.error()["message"]
    assert tree(roomy) == {}


def test_R36_a_push_to_an_owner_that_stands_still_is_uncertain(serve, roomy):
    owner = serve(BIG + ",access=write")
    source = sparse_file(f"{roomy}/source", BIG_BYTES)
    with running(
        "push",
        "--json",
        "--progress",
        "--stall-timeout",
        "1",
        "--range",
        "big",
        source,
        owner.reference,
    ) as push:
        wait_in_the_middle(push)
        owner.process.send_signal(signal.SIGSTOP)
        result = finish(push)
    assert result.status == 6, result
    assert result.error()["code"] == "stalled"
    assert "may have changed" in result.error()["message"]


def test_a_time_limit_ends_a_pull(serve, roomy):
    owner = serve(BIG)
    with running("pull", "--timeout", "1", owner.reference, "-") as pull:
        pull.stdout.read(1)  # and no more: the pipe stays full
        time.sleep(1.5)
        pull.stdout.read(8 * 2**20)
        while pull.stdout.read(2**20):
            pass
        status = pull.wait(40)
        error = pull.stderr.read().decode()
    assert status == 9, error
    assert "wherry: timed_out: 'big': not done after 1 s" in error


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_pull_and_leaves_nothing_half_done(serve, roomy, number, status):
    owner = serve(BIG)
    with pulling(owner, f"{roomy}/copy") as pull:
        wait_in_the_middle(pull)
        assert [os.path.basename(name) for name in tree_names(roomy)] == ["big.wherry-part"]
        pull.send_signal(number)
        result = finish(pull, timeout_s=10)
    assert result.status == status, result
    assert result.error()["code"] == "cancelled"
    assert tree(roomy) == {}
    assert wherry("describe", owner.reference).status == 0, "the owner goes on"


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_R29_a_signal_ends_a_push_and_says_what_it_did(serve, roomy, number, status):
    owner = serve(BIG + ",access=write")
    source = sparse_file(f"{roomy}/source", BIG_BYTES)
    with running("push", "--json", "--progress", "--range", "big", source, owner.reference) as push:
        wait_in_the_middle(push)
        push.send_signal(number)
        result = finish(push, timeout_s=10)
    assert result.status == status, result
    assert result.error()["code"] == "cancelled"
    assert result.json()["files"][0]["remote_effect"] in ("partial", "uncertain")
    assert "confirmed in place" in result.error()["message"]


def test_a_signal_ends_a_pull_from_an_owner_that_stands_still(serve, roomy):
    owner = serve(BIG)
    with pulling(owner, f"{roomy}/copy") as pull:
        wait_in_the_middle(pull)
        owner.process.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        pull.send_signal(signal.SIGINT)
        result = finish(pull, timeout_s=10)
        assert time.monotonic() - started < 6
    assert result.status == 130, result
    assert tree(roomy) == {}


def test_a_signal_ends_a_command_that_waits_for_a_silent_peer():
    # Nothing has been made yet, so there is nothing to clean up, and no reason to wait.
    connected = threading.Event()

    def silence(connection, ended):
        connected.set()
        ended.wait(30)

    with peer(silence) as port:
        reference = f"wherry://127.0.0.1:{port}/x"
        with running("describe", "--connect-timeout", "30", reference) as process:
            assert connected.wait(20)
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130
            assert time.monotonic() - started < 3


def test_two_pulls_to_one_target_do_not_mix(serve, roomy):
    owner = serve(BIG)
    with pulling(owner, f"{roomy}/copy") as pull:
        wait_in_the_middle(pull)
        pull.send_signal(signal.SIGSTOP)
        try:
            result = wherry("pull", owner.reference, f"{roomy}/copy")
            expect_error(result, "busy", 5, "another process writes")
        finally:
            pull.send_signal(signal.SIGCONT)
        # The first one's part file is still its own: it goes with it, and only then.
        assert [os.path.basename(name) for name in tree_names(roomy)] == ["big.wherry-part"]
        pull.send_signal(signal.SIGINT)
        assert finish(pull).status == 130
    assert tree(roomy) == {}


def test_a_pull_that_was_killed_does_not_block_the_next(serve, roomy):
    owner = serve(BIG, "mem:1k,name=small")
    with pulling(owner, f"{roomy}/copy", "--range", "big") as pull:
        wait_in_the_middle(pull)
        pull.kill()
        pull.wait(20)
    assert os.path.exists(f"{roomy}/copy.wherry-part")
    result = wherry(
        "pull", "--no-sync", "--range", "big", "--length", "1MiB", owner.reference, f"{roomy}/copy"
    )
    assert result.status == 0, result
    assert [os.path.basename(name) for name in tree_names(roomy)] == ["copy"]


def test_standard_error_that_is_gone_stops_nothing(serve, roomy):
    owner = serve("mem:1MiB,name=a")
    reader, writer = os.pipe()
    os.close(reader)
    with running("pull", "--progress", owner.reference, f"{roomy}/copy", stderr=writer) as pull:
        os.close(writer)
        assert pull.wait(40) == 0
    assert os.path.getsize(f"{roomy}/copy/a") == 2**20

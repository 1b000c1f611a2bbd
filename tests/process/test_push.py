"""Writing files into ranges, and what is refused before a byte moves."""

import os
import random

from support import expect_error, wherry


def random_file(path, size, seed=7):
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


def test_what_is_pushed_can_be_pulled_back(serve, tmp_path):
    source = random_file(tmp_path / "source", 20 * 2**20 + 13)
    owner = serve("mem:32MiB,name=inbox,access=write")
    result = wherry("push", "--verify", "--range", "inbox", source, owner.reference)
    assert result.status == 0, result
    assert "pushed 1 file" in result.text and "verified" in result.text
    back = wherry(
        "pull", "--range", "inbox", "--length", source.stat().st_size, owner.reference, "-"
    )
    assert back.stdout == source.read_bytes()


def test_R37_a_writable_file_holds_what_was_pushed(serve, tmp_path):
    source = random_file(tmp_path / "source", 100_000)
    target = tmp_path / "target"
    target.write_bytes(b"." * 200_000)
    owner = serve(f"{target},access=write")
    result = wherry("push", "--range", "target", "--offset", "50k", source, owner.reference)
    assert result.status == 0, result
    assert target.read_bytes() == b"." * 50_000 + source.read_bytes() + b"." * 50_000


def test_files_find_the_ranges_of_their_names(serve, tmp_path):
    first = random_file(tmp_path / "first", 1000, 1)
    second = random_file(tmp_path / "-second,", 2000, 2)
    empty = random_file(tmp_path / "empty", 0)
    owner = serve(
        "mem:1k,name=first,access=write",
        "mem:2k,name=-second\\,,access=write",
        "mem:1k,name=empty,access=write",
    )
    result = wherry("push", "--json", "--verify", first, second, empty, owner.reference)
    assert result.status == 0, result
    document = result.json()
    assert document["completed"] == 3 and document["verified"]
    assert [
        (file["range"], file["length_bytes"], file["remote_effect"]) for file in document["files"]
    ] == [("first", 1000, "applied"), ("-second,", 2000, "applied"), ("empty", 0, "none")]
    for file in (first, second):
        assert (
            wherry("pull", f"--range={file.name}", owner.reference, "-").stdout == file.read_bytes()
        )


def test_a_file_that_is_too_long_is_refused_before_a_byte_moves(serve, tmp_path):
    fits = random_file(tmp_path / "fits", 1000)
    long = random_file(tmp_path / "long", 1001)
    owner = serve("mem:1k,name=fits,access=write", "mem:1k,name=long,access=write")
    expect_error(
        wherry("push", fits, long, owner.reference),
        "out_of_range",
        4,
        "1001 bytes",
        "1000 bytes",
        "'long'",
    )
    assert wherry("pull", "--range", "fits", owner.reference, "-").stdout == bytes(1000)
    expect_error(
        wherry("push", fits, "--offset", "1", owner.reference), "out_of_range", 4, "offset 1"
    )


def test_R25_a_range_that_is_not_writable_is_not_written(serve, tmp_path):
    source = random_file(tmp_path / "a", 10)
    owner = serve("mem:1k,name=a")
    expect_error(wherry("push", source, owner.reference), "access_denied", 4, "'a'", "not writable")


def test_a_range_that_is_not_there(serve, tmp_path):
    source = random_file(tmp_path / "a", 10)
    owner = serve("mem:1k,name=b,access=write")
    expect_error(wherry("push", source, owner.reference), "not_found", 4, "a")


def test_wrong_sources_are_told_before_the_owner_is_asked(tmp_path):
    nowhere = "wherry://192.0.2.1:1/x"
    random_file(tmp_path / "a", 10)
    os.mkfifo(tmp_path / "pipe")
    expect_error(
        wherry("push", tmp_path / "missing", nowhere),
        "invalid_argument",
        2,
        "missing",
        "No such file",
    )
    expect_error(wherry("push", tmp_path, nowhere), "invalid_argument", 2, "no regular file")
    expect_error(
        wherry("push", tmp_path / "pipe", nowhere), "invalid_argument", 2, "no regular file"
    )
    expect_error(
        wherry("push", tmp_path / "a", tmp_path / "a", "--range", "x", nowhere),
        "invalid_argument",
        2,
        "single SRC",
    )
    expect_error(wherry("push", tmp_path / "a", "not-a-reference"), "invalid_argument", 2)


def test_two_files_for_one_range_are_refused(serve, tmp_path):
    (tmp_path / "d").mkdir()
    first, second = random_file(tmp_path / "a", 10), random_file(tmp_path / "d" / "a", 10)
    owner = serve("mem:1k,name=a,access=write")
    expect_error(wherry("push", first, second, owner.reference), "invalid_argument", 2, "both")


def test_odd_names_are_pushed(serve, tmp_path):
    names = [b"new\nline", b"\xff\xfe", b"[x]"]
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(name)
    owner = serve(*[b"mem:1k,access=write,name=" + name for name in names])
    assert wherry("push", *names, owner.reference, cwd=tmp_path).status == 0
    for name in names:
        back = wherry("pull", "--range", name, "--length", len(name), owner.reference, "-")
        assert back.stdout == name, back

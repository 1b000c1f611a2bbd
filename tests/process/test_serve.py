"""What `serve` publishes, where it listens, how it ends; and what `describe` and `doctor` see."""

import json
import os
import signal
import socket
import time

import pytest

from support import closed_port, expect_error, has_ipv6, read_line, running, wherry


def described(reference):
    result = wherry("describe", "--json", reference)
    assert result.status == 0, result
    return result.json()


def test_R23_ranges_are_described_with_what_is_known_of_them(serve, tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"x" * 5000)
    owner = serve(tmp_path / "weights.bin", "mem:1MiB,name=inbox,access=write", "--name", "w")
    document = described(owner.reference)
    assert document["reference"] == owner.reference
    assert document["name"] == "w" and document["epoch"] > 0
    assert document["range_count"] == 2 and document["length_bytes"] == 5000 + 2**20
    ranges = {range_["name"]: range_ for range_ in document["ranges"]}
    file, memory = ranges["weights.bin"], ranges["inbox"]
    assert (
        file["length_bytes"] == 5000
        and file["visibility"] == "remote_read"
        and file["kind"] == "file"
    )
    assert file["version"]["size_bytes"] == 5000
    assert file["version"]["inode"] == (tmp_path / "weights.bin").stat().st_ino
    assert memory["length_bytes"] == 2**20 and memory["visibility"] == "remote_read_write"
    assert "tcp" in memory["routes"] and "version" not in memory and memory["evidence"]
    text = wherry("describe", owner.reference).stdout.decode()
    assert owner.reference in text and "weights.bin" in text and "2 ranges" in text


def test_the_reference_is_the_only_line_and_the_epoch_may_be_left_out(serve):
    owner = serve("mem:4k,name=a")
    assert owner.first_line.startswith(b"wherry://127.0.0.1:") and b"/a?epoch=" in owner.first_line
    without = owner.reference.split("?")[0]
    result = wherry("describe", without)
    assert result.status == 0
    assert f"bound to {owner.reference}" in result.text


def test_json_of_serve_is_one_event_a_line(serve):
    owner = serve("--json", "mem:4k,name=a")
    ready = json.loads(owner.first_line)
    assert ready["event"] == "ready" and ready["ranges"] == 1 and ready["length_bytes"] == 4000
    assert described(ready["reference"])["range_count"] == 1
    owner.process.send_signal(signal.SIGTERM)
    assert json.loads(read_line(owner.process.stdout))["event"] == "closed"
    assert owner.process.wait(20) == 0


def test_a_directory_is_published_by_relative_names_and_the_rest_counted_once(serve, tmp_path):
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "a").write_bytes(b"1")
    (tree / "sub" / "b").write_bytes(b"22")
    (tree / "link").symlink_to("a")
    (tree / "loop").symlink_to(".")
    (tree / "dangling").symlink_to("nowhere")
    os.mkfifo(tree / "pipe")
    owner = serve(tree)
    document = described(owner.reference)
    assert sorted(range_["name"] for range_ in document["ranges"]) == ["a", "link", "sub/b"]
    assert "/tree?epoch=" in owner.reference
    assert owner.text.count("left out 3 entries:") == 1, owner.text
    for part in ("1 dangling link", "1 link to a directory", "1 pipe"):
        assert part in owner.text


def test_a_name_prefixes_a_directory(serve, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_bytes(b"x")
    owner = serve(f"{tmp_path}/d,name=models")
    assert [range_["name"] for range_ in described(owner.reference)["ranges"]] == ["models/x"]


def test_nothing_to_serve_exits_2(tmp_path):
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "d" / "pipe")
    result = wherry("serve", tmp_path / "d")
    expect_error(result, "invalid_argument", 2, "nothing to serve")
    assert "1 pipe" in result.text


def test_odd_names_come_back_as_they_are(serve, tmp_path):
    names = [
        b"new\nline",
        b"two  spaces",
        "日本".encode(),
        b"\xff\xfe",
        b"-dash",
        b"com,ma",
        b"[list]",
        b"%41?x=1#y",
    ]
    for number, name in enumerate(names):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(bytes([number]))
    escaped = [name.replace(b",", b"\\,") for name in names]
    owner = serve("--name", b"odd\n\xff,name", "--", *escaped, cwd=tmp_path)
    document = described(owner.reference)
    assert document["name"] == "odd\n\ufffd,name"
    ranges = document["ranges"]
    assert [range_["name"] for range_ in ranges] == [
        name.decode(errors="replace") for name in names
    ]
    assert [range_.get("name_base64") for range_ in ranges] == [None] * 3 + ["//4="] + [None] * 4
    text = wherry("describe", owner.reference).stdout
    assert b"new\\nline" in text and b"\\xff\\xfe" in text


def test_create_makes_a_file_that_peers_may_write(serve, tmp_path):
    owner = serve(f"{tmp_path}/made,size=100k,create,access=write")
    assert (tmp_path / "made").stat().st_size == 100_000
    assert described(owner.reference)["ranges"][0]["visibility"] == "remote_read_write"
    result = wherry("serve", f"{tmp_path}/made,size=1k,create")
    expect_error(result, "invalid_argument", 2, "made", "1000 bytes")


def test_a_port_in_use_is_named(serve):
    owner = serve("mem:1k")
    result = wherry("serve", "mem:1k", "--listen", owner.address)
    expect_error(result, "io_error", 1, owner.address, "Address already in use")


@pytest.mark.parametrize(
    "listen", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x", ":7000", "[::1:0", ""]
)
def test_a_bad_listen_address_exits_2(listen):
    result = wherry("serve", "mem:1k", f"--listen={listen}")
    expect_error(result, "invalid_argument", 2)


def test_an_address_that_is_not_ours_is_named():
    result = wherry("serve", "mem:1k", "--listen", "192.0.2.1:0")
    expect_error(result, "io_error", 1, "192.0.2.1", "Cannot assign requested address")


def test_a_wildcard_needs_an_address_to_advertise(serve):
    result = wherry("serve", "mem:1k", "--listen", "0.0.0.0:0")
    expect_error(result, "invalid_argument", 2, "0.0.0.0")
    port = closed_port()
    owner = serve("mem:1k", "--listen", f"0.0.0.0:{port}", "--advertise", f"127.0.0.1:{port}")
    assert owner.reference.startswith(f"wherry://127.0.0.1:{port}/")
    assert "warning" in owner.text and "without authentication" in owner.text
    assert described(owner.reference)["range_count"] == 1


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
def test_ipv6_addresses_stand_in_brackets(serve):
    owner = serve("mem:1k", "--listen", "[::1]:0")
    assert owner.reference.startswith("wherry://[::1]:")
    assert owner.text == ""
    assert described(owner.reference)["range_count"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_and_exits_0(serve, number):
    owner = serve("mem:1k")
    started = time.monotonic()
    assert owner.stop(number) == 0
    assert time.monotonic() - started < 10


def test_R18_closing_does_not_wait_for_a_peer_that_stands_still(serve, tmp_path):
    owner = serve("mem:1GiB,name=big", "--close-timeout", "1")
    with running("pull", owner.reference, "-") as pull:
        assert pull.stdout.read(1) == b"\0"
        pull.send_signal(signal.SIGSTOP)
        try:
            started = time.monotonic()
            owner.process.send_signal(signal.SIGTERM)
            owner.process.wait(20)
            assert time.monotonic() - started < 8
        finally:
            pull.send_signal(signal.SIGCONT)


def test_a_second_signal_shortens_the_close(serve):
    owner = serve("mem:1GiB,name=big", "--close-timeout", "60")
    with running("pull", owner.reference, "-") as pull:
        assert pull.stdout.read(1) == b"\0"
        pull.send_signal(signal.SIGSTOP)
        try:
            started = time.monotonic()
            for _ in range(3):
                owner.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
                if owner.process.poll() is not None:
                    break
            owner.process.wait(20)
            assert time.monotonic() - started < 10
        finally:
            pull.send_signal(signal.SIGCONT)


def test_a_reader_that_has_gone_before_the_reference_ends_serve():
    reader, writer = os.pipe()
    os.close(reader)
    with running("serve", "mem:1k", stdout=writer) as process:
        os.close(writer)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"io_error: standard output" in stderr


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", os.urandom(4096), b"WHERRY\r\n" + b"\xff" * 64, b"W"],
    ids=["http", "random", "bad-preamble", "one-byte"],
)
def test_R42_strangers_do_not_disturb_an_owner(serve, data):
    owner = serve("mem:64k,name=a")
    host, port = owner.address.rsplit(":", 1)
    strangers = [socket.create_connection((host, int(port)), timeout=10) for _ in range(8)]
    try:
        for stranger in strangers:
            stranger.sendall(data)
        result = wherry("pull", owner.reference, "--range", "a", "-")
        assert result.status == 0 and len(result.stdout) == 64_000, result
    finally:
        for stranger in strangers:
            stranger.close()
    assert owner.stop() == 0


def test_R1_doctor_says_that_tcp_is_ready_for_a_source(serve):
    owner = serve("mem:1k")
    result = wherry("doctor", "--json", "--require", "tcp", owner.reference)
    assert result.status == 0, result
    document = result.json()
    assert document["source"] == "open"
    paths = {path["path"]: path for path in document["paths"]}
    assert paths["tcp"]["ready"]["answer"] == "yes"


def test_R1_doctor_reports_a_source_that_is_not_there():
    reference = f"wherry://127.0.0.1:{closed_port()}/gone"
    result = wherry("doctor", reference)
    assert result.status == 0, result
    assert "connection_lost" in result.stdout.decode()
    result = wherry("doctor", "--json", "--require", "tcp", reference)
    assert result.status == 3
    assert result.error()["code"] == "unavailable"
    assert result.json()["source"]["error"]["code"] == "connection_lost"

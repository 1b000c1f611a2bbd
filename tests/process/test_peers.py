"""References that are wrong, and what answers at an address that is no owner, or another one."""

import os
import random
import time

import pytest

from support import closed_port, expect_error, has_ipv6, peer, preamble, wherry


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "weights",
        "http://127.0.0.1:1/x",
        "wherry://",
        "wherry:///x",
        "wherry://:1/x",
        "wherry://127.0.0.1/x",
        "wherry://127.0.0.1:/x",
        "wherry://127.0.0.1:0/x",
        "wherry://127.0.0.1:65536/x",
        "wherry://127.0.0.1:port/x",
        "wherry://127.0.0.1:-1/x",
        "wherry://127.0.0.1:1",
        "wherry://127.0.0.1:1/",
        "wherry://127.0.0.1:1/%zz",
        "wherry://127.0.0.1:1/a%00b",
        "wherry://127.0.0.1:1/" + "n" * 4096,
        "wherry://127.0.0.1:1/x?epoch=",
        "wherry://127.0.0.1:1/x?epoch=two",
        "wherry://127.0.0.1:1/x?epoch=-1",
        "wherry://127.0.0.1:1/x?epoch=99999999999999999999999",
        "wherry://127.0.0.1:1/x?era=1",
        "wherry://[::1:1/x",
        "wherry://[]:1/x",
        "wherry://::1:1/x",
    ],
)
@pytest.mark.parametrize("command", ["describe"])
def test_a_bad_reference_exits_2(command, reference):
    expect_error(wherry(command, reference), "invalid_argument", 2)


@pytest.mark.parametrize("command", [["pull"], ["doctor"], ["push", os.devnull]])
def test_every_command_refuses_a_bad_reference(command, tmp_path):
    if command[0] == "push":
        (tmp_path / "file").write_bytes(b"x")
        command = ["push", tmp_path / "file"]
    expect_error(
        wherry(*command, "wherry://127.0.0.1:1/x?epoch=two"), "invalid_argument", 2, "epoch"
    )


def test_a_closed_port_is_told_at_once(tmp_path):
    address = f"127.0.0.1:{closed_port()}"
    started = time.monotonic()
    result = wherry("pull", f"wherry://{address}/x", tmp_path / "copy")
    expect_error(result, "connection_lost", 9, address, "Connection refused")
    assert time.monotonic() - started < 4
    error = wherry("pull", "--json", f"wherry://{address}/x", tmp_path / "copy").error()
    assert error["native_call"] == "connect" and error["native_number"] == 111
    assert not (tmp_path / "copy").exists()


def test_a_host_without_an_address_is_named():
    result = wherry(
        "describe", "--connect-timeout", "5", "wherry://no-such-host.invalid:7000/x", timeout_s=30
    )
    assert result.status in (3, 4, 9), result
    assert "no-such-host.invalid" in result.text


def http(connection, ended):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html>no</html>")
    ended.wait(5)


def random_bytes(connection, ended):
    connection.sendall(random.Random(3).randbytes(4096))
    ended.wait(5)


def ssh(connection, ended):
    connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    ended.wait(5)


@pytest.mark.parametrize("talk", [http, random_bytes, ssh])
def test_R22_a_peer_that_is_not_wherry_is_told_apart(talk):
    with peer(talk) as port:
        result = wherry("describe", f"wherry://127.0.0.1:{port}/x")
    expect_error(result, "protocol_mismatch", 4, f"127.0.0.1:{port}")
    if talk is http:
        assert "HTTP" in result.text


def test_R22_another_version_is_refused_with_both():
    def old(connection, ended):
        connection.sendall(preamble(version=4711))
        ended.wait(5)

    ours = wherry("version", "--json").json()["protocol"]
    with peer(old) as port:
        result = wherry("describe", f"wherry://127.0.0.1:{port}/x")
    expect_error(result, "protocol_mismatch", 4, "4711", str(ours))


def test_R22_a_broken_preamble_is_refused():
    def broken(connection, ended):
        data = bytearray(preamble(version=1))
        data[13] ^= 1
        connection.sendall(data)
        ended.wait(5)

    with peer(broken) as port:
        expect_error(wherry("describe", f"wherry://127.0.0.1:{port}/x"), "protocol_mismatch", 4)


def silence(connection, ended):
    ended.wait(30)


def one_byte_a_second(connection, ended):
    for byte in preamble(version=1):
        connection.sendall(bytes([byte]))
        if ended.wait(1):
            return


def preamble_and_silence(connection, ended):
    connection.sendall(preamble(version=1))
    ended.wait(30)


@pytest.mark.parametrize("talk", [silence, one_byte_a_second, preamble_and_silence])
def test_R43_a_peer_that_takes_its_time_is_given_up(talk):
    with peer(talk) as port:
        started = time.monotonic()
        result = wherry("describe", "--connect-timeout", "1", f"wherry://127.0.0.1:{port}/x")
        assert time.monotonic() - started < 5
    expect_error(result, "timed_out", 9, f"127.0.0.1:{port}")


def test_a_peer_that_hangs_up_is_told():
    with peer(lambda connection, ended: None) as port:
        result = wherry("describe", f"wherry://127.0.0.1:{port}/x")
    expect_error(result, "connection_lost", 9)


@pytest.mark.parametrize("seed", range(5))
def test_R42_noise_after_a_good_preamble_is_an_error_and_no_more(seed):
    def noise(connection, ended):
        connection.sendall(preamble(version=1) + random.Random(seed).randbytes(100_000))
        ended.wait(5)

    with peer(noise) as port:
        result = wherry("describe", "--connect-timeout", "2", f"wherry://127.0.0.1:{port}/x")
    assert result.status in (4, 9), result
    assert "wherry: " in result.text


def test_a_source_of_another_name_is_not_found(serve):
    owner = serve("mem:1k", "--name", "weights")
    expect_error(
        wherry("describe", owner.reference.replace("/weights", "/biases")), "not_found", 4, "biases"
    )


def test_R21_a_wrong_epoch_is_stale_and_the_current_one_told(serve):
    owner = serve("mem:1k", "--name", "weights")
    base, epoch = owner.reference.split("?epoch=")
    result = wherry("describe", "--json", f"{base}?epoch=1")
    assert result.status == 4
    error = result.error()
    assert error["code"] == "stale_epoch" and error["current_epoch"] == int(epoch)


def test_R21_a_restart_on_the_same_port_is_another_source(serve, tmp_path):
    first = serve("mem:64k,name=a", "--name", "weights")
    assert first.stop() == 0
    second = serve("mem:64k,name=a", "--name", "weights", "--listen", first.address)
    assert second.address == first.address and second.reference != first.reference
    result = wherry("pull", first.reference, tmp_path / "copy")
    expect_error(result, "stale_epoch", 4)
    assert not (tmp_path / "copy").exists()
    assert wherry("pull", second.reference, tmp_path / "copy").status == 0


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
def test_ipv6_peers_are_named_in_brackets(serve, tmp_path):
    owner = serve("mem:4k,fill=random:1,name=a", "--listen", "[::1]:0")
    assert wherry("pull", "--range", "a", owner.reference, tmp_path / "copy").status == 0
    assert (tmp_path / "copy").stat().st_size == 4000
    with peer(http, host="::1") as port:
        expect_error(
            wherry("describe", f"wherry://[::1]:{port}/x"), "protocol_mismatch", 4, f"[::1]:{port}"
        )

"""What the process tests share: running the command, owners that end with their test, odd peers.

The command is $WHERRY, $WHERRY_BIN or build/release/bin/wherry. Nothing here uses a fixed port, and
every wait has an end.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHERRY = (
    os.environ.get("WHERRY")
    or os.environ.get("WHERRY_BIN")
    or str(ROOT / "build" / "release" / "bin" / "wherry")
)
TIMEOUT_S = 40  # of one command: far more than it takes, far less than the suite's


class Result:
    """How a command ended, with what it said."""

    def __init__(self, status, stdout, stderr):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def text(self):
        return self.stderr.decode(errors="replace")

    def json(self):
        return json.loads(self.stdout)

    def error(self):
        """The error object that a command with --json ends with."""
        lines = [json.loads(line) for line in self.stderr.splitlines()]
        return next(
            line["error"] for line in reversed(lines) if "error" in line and "event" not in line
        )

    def __repr__(self):
        return f"status {self.status}\nstdout {self.stdout[:2000]!r}\nstderr {self.text[:4000]}"


def wherry(*arguments, timeout_s=TIMEOUT_S, **options):
    process = start(*arguments, **options)
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return Result(process.returncode, stdout, stderr)


def start(*arguments, **options):
    """A command that goes on running; the caller ends it."""
    defaults = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    words = [argument if isinstance(argument, bytes) else str(argument) for argument in arguments]
    return subprocess.Popen([WHERRY, *words], **{**defaults, **options})


def expect_error(result, code, status, *parts):
    """Code, exit status and parts of the message; a hint that leads to the code's entry."""
    assert result.status == status, result
    lines = result.text.splitlines()
    errors = [line for line in lines if line.startswith(f"wherry: {code}: ")]
    assert errors, result
    for part in parts:
        assert part in errors[-1], (part, result)
    assert lines[-1].startswith("hint: "), result
    assert lines[-1].endswith(f"docs/TROUBLESHOOTING.md#{code}"), result


def read_line(stream, timeout_s=TIMEOUT_S):
    """One line of a pipe, unbuffered, so that none is lost to a reader that comes later."""
    line = b""
    end = time.monotonic() + timeout_s
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0, end - time.monotonic()))
        assert ready, f"no line within {timeout_s} s, only {line!r}"
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line


class Owner:
    """A running `wherry serve`."""

    def __init__(self, directory, *arguments, **options):
        self.stderr_path = pathlib.Path(directory) / f"owner-{time.monotonic_ns()}.stderr"
        with open(self.stderr_path, "wb") as stderr:
            self.process = start("serve", *arguments, stderr=stderr, **options)
        self.first_line = read_line(self.process.stdout)
        self.reference = self.first_line.decode().strip()
        if not self.first_line:
            self.process.wait(TIMEOUT_S)
            raise AssertionError(f"no owner: {self.text}")

    @property
    def text(self):
        return self.stderr_path.read_text(errors="replace")

    @property
    def address(self):
        return self.reference.split("/")[2]

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(TIMEOUT_S)

    def stop(self, with_signal=signal.SIGTERM):
        """Closes it and gives its exit status."""
        self.process.send_signal(with_signal)
        try:
            return self.process.wait(TIMEOUT_S)
        finally:
            self.close()

    def close(self):
        if self.process.poll() is None:
            self.kill()
        self.process.stdout.close()


@contextlib.contextmanager
def owners(directory):
    """A function that starts owners; all of them end with the block."""
    started = []

    def serve(*arguments, **options):
        started.append(Owner(directory, *arguments, **options))
        return started[-1]

    try:
        yield serve
    finally:
        for owner in started:
            owner.close()


@contextlib.contextmanager
def running(*arguments, **options):
    """A command in the background that does not outlive the block."""
    process = start(*arguments, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait(TIMEOUT_S)


def wait_in_the_middle(process):
    """Reads progress (--json --progress) until some bytes have moved and more are to come."""
    while True:
        line = read_line(process.stderr)
        assert line, "the command ended before the middle"
        event = json.loads(line)
        if event.get("event") == "progress" and 0 < event["bytes"] < event["total_bytes"]:
            return event


def finish(process, timeout_s=TIMEOUT_S):
    """Waits for a background command."""
    stdout, stderr = process.communicate(timeout=timeout_s)
    return Result(process.returncode, stdout or b"", stderr or b"")


@contextlib.contextmanager
def peer(talk, host="127.0.0.1"):
    """A TCP server that does `talk(connection, ended)` with each connection; gives its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((host, 0))
    listener.listen(16)
    ended = threading.Event()

    def serve_one(connection):
        with connection, contextlib.suppress(OSError):
            talk(connection, ended)

    def accept():
        with contextlib.suppress(OSError):
            while not ended.is_set():
                connection, _ = listener.accept()
                threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(TIMEOUT_S)


def closed_port():
    """A port on which nobody listened a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def preamble(version, role=2, security=0):
    """The first bytes of a connection, as src/wire/preamble.h lays them out."""
    head = b"WHERRY\r\n" + struct.pack("<HBB", version, role, security)
    return head + struct.pack("<I", crc32c(head))


def tree(directory):
    """Every file below a directory: relative name to content. Names are bytes."""
    root = os.fsencode(directory)
    found = {}
    for parent, _, names in os.walk(root):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def sparse_file(path, length_bytes):
    with open(path, "wb") as file:
        file.truncate(length_bytes)
    return path

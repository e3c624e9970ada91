# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile libvirtd: it speaks libvirt's framing well enough for the real client until it attacks.

A message is a length (which includes itself), six numbers (program, version, procedure, type, serial, status)
and XDR. `GOOD` answers everything: it is the neighbour, which an attack must not affect.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import libvirt

PROGRAM, QEMU, KEEPALIVE = 0x20008086, 0x20008087, 0x6B656570
CALL, REPLY, EVENT, STREAM = 0, 1, 2, 3
OPEN, CLOSE, DEFINE, XML, LOOKUP, RESUME, FEATURE, AUTHENTICATE = 1, 2, 11, 14, 23, 28, 60, 66
VERSION, START, SCREENSHOT, STATE, DESTROY, SHUT_DOWN = 157, 196, 211, 212, 234, 258
REGISTER, DEREGISTER, LIFECYCLE, WATCH, UNWATCH = 316, 317, 318, 360, 361

_HEADER = struct.Struct(">IIIiiIi")
_SHUT_OFF, _STARTED = 5, 2
_FAILED, _CONTINUES = 1, 2


def string(text: bytes) -> bytes:
    """Encode a string in XDR."""
    return struct.pack(">I", len(text)) + text + b"\0" * (-len(text) % 4)


OPTIONAL = struct.pack(">i", 1)
"""Marks an optional value as present."""
DOMAIN = string(b"web") + b"u" * 16 + struct.pack(">i", -1)
FIT_XML = b"<domain type='qemu'><name>web</name><os><type machine='q35'>hvm</type></os></domain>"


def message(
    procedure: int, kind: int, serial: int, payload: bytes, program: int = PROGRAM, *, status: int = 0
) -> bytes:
    """Frame a message."""
    return _HEADER.pack(_HEADER.size + len(payload), program, 1, procedure, kind, serial, status) + payload


def part(serial: int, data: bytes) -> bytes:
    """Frame a part of a screenshot's stream; no data for its end."""
    return message(SCREENSHOT, STREAM, serial, data, status=_CONTINUES)


EVENT_OF_START = message(LIFECYCLE, EVENT, 0, struct.pack(">i", 1) + DOMAIN + struct.pack(">ii", _STARTED, 0))
EVENTS = EVENT_OF_START * 1000

ANSWERS: dict[int, Callable[[int], bytes]] = {
    AUTHENTICATE: lambda _unused: struct.pack(">II", 1, 0),
    FEATURE: lambda _unused: struct.pack(">i", 1),
    REGISTER: lambda _unused: struct.pack(">i", 1),
    VERSION: lambda _unused: struct.pack(">Q", 9000000),
    STATE: lambda _unused: struct.pack(">ii", _SHUT_OFF, 0),
    XML: lambda _unused: string(FIT_XML),
    **dict.fromkeys((DEFINE, LOOKUP, START), lambda _unused: DOMAIN),
    **dict.fromkeys((OPEN, CLOSE, RESUME, DESTROY, SHUT_DOWN, DEREGISTER, WATCH, UNWATCH), lambda _unused: b""),
}


class Caller:
    """The server's end of one connection."""

    def __init__(self, transport: socket.socket) -> None:
        self.transport = transport
        self.kind = CALL
        """Of the last message."""

    def receive(self) -> tuple[int, int, int]:
        """Wait for a message and return its program, procedure and serial. Raises EOFError when the connection ends."""
        (length,) = struct.unpack(">I", self._read(4))
        program, _version, procedure, self.kind, serial, _status = struct.unpack(">IIiiIi", self._read(length - 4)[:24])
        return program, procedure, serial

    def answer(self, program: int, procedure: int, serial: int) -> None:
        """Answer like a regular libvirtd."""
        if program == KEEPALIVE:
            self.transport.sendall(message(2, EVENT, 0, b"", KEEPALIVE))
        elif program == QEMU:
            self.transport.sendall(message(procedure, REPLY, serial, OPTIONAL + string(b'{"return":{}}'), QEMU))
        else:
            self.transport.sendall(message(procedure, REPLY, serial, ANSWERS[procedure](serial)))

    def hear_out(self) -> None:
        """Read everything and answer nothing until the client disconnects."""
        while self.transport.recv(65536):
            pass

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.transport.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data


Behaviour = Callable[[Caller, int, int, int], bool]
"""Gets a message's program, procedure and serial. Attacks and returns True, or returns False for the regular answer."""


def silent_from(*procedures: int) -> Behaviour:
    """Answer everything until one of these calls arrives, and nothing afterwards."""

    def behave(caller: Caller, program: int, procedure: int, _unused: int) -> bool:
        if program != PROGRAM or procedure not in procedures:
            return False
        caller.hear_out()
        return True

    return behave


def deaf_to(*procedures: int) -> Behaviour:
    """Answer everything except these calls."""
    return lambda _unused, program, procedure, __: program == PROGRAM and procedure in procedures


def trickle(caller: Caller, program: int, procedure: int, serial: int) -> bool:
    """Answer the look-up slowly, byte by byte."""
    if (program, procedure) != (PROGRAM, LOOKUP):
        return False
    for byte in message(LOOKUP, REPLY, serial, DOMAIN * 100):
        caller.transport.sendall(bytes([byte]))
        time.sleep(0.01)
    return True


def lengthen(length: int) -> Behaviour:
    """Answer the look-up with half a header that announces `length` bytes."""

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if (program, procedure) != (PROGRAM, LOOKUP):
            return False
        caller.transport.sendall(struct.pack(">I", length) + message(LOOKUP, REPLY, serial, b"")[4:14])
        caller.hear_out()
        return True

    return behave


def flood(data: bytes) -> Behaviour:
    """Send this data endlessly as soon as the client registers for events."""

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if (program, procedure) != (PROGRAM, REGISTER):
            return False
        caller.answer(program, procedure, serial)
        pour(caller, data)
        return True

    return behave


def pour(caller: Caller, data: bytes) -> None:
    """Send this data until the client disconnects. Raises OSError then."""
    while True:
        caller.transport.sendall(data)


def ping_from(procedure: int) -> Behaviour:
    """From this call on, send keepalive requests endlessly at a moderate rate and read no answers.

    A start is never answered; any other call is answered first.
    """

    def behave(caller: Caller, program: int, called: int, serial: int) -> bool:
        if (program, called) != (PROGRAM, procedure):
            return False
        if procedure != START:
            caller.answer(program, called, serial)
        while True:
            caller.transport.sendall(message(1, EVENT, 0, b"", KEEPALIVE) * 10)
            time.sleep(0.005)

    return behave


MOST_LINGERING, LET_GO_SECONDS = 60, 0.05


class Lingering:
    """TCP sockets with unsent data that is never read: their last close blocks until `release`."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._peers: list[socket.socket] = []

    def give(self, caller: Caller) -> None:
        """Send an event with such a socket, after other events, so that we close our copy before the client reads it.

        If the client read it first, our close would be the last and block. Therefore a thread closes it.
        """
        lingering = socket.create_connection(self._listener.getsockname())
        try:
            self._peers.append(self._listener.accept()[0])
        except OSError:  # released meanwhile
            lingering.close()
            raise
        lingering.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1 << 24))
        lingering.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                lingering.send(b"x" * 65536)
        lingering.setblocking(True)  # a non-blocking socket would not block in close

        def send_and_let_go() -> None:
            with suppress(OSError):
                socket.send_fds(caller.transport, [EVENT_OF_START], [lingering.fileno()])
            lingering.close()

        try:
            caller.transport.sendall(EVENT_OF_START * 100)
        finally:
            sending = threading.Thread(target=send_and_let_go, name="hostile", daemon=True)
            sending.start()
            sending.join(LET_GO_SECONDS)

    def release(self) -> None:
        for sock in (self._listener, *self._peers):
            sock.close()


def give_lingering(lingering: Lingering, procedure: int) -> Behaviour:
    """Send several lingering sockets before the answer to a look-up or after the answer to another call.

    A socket that the client reads before our thread has closed its copy blocks only us.
    """

    def behave(caller: Caller, program: int, called: int, serial: int) -> bool:
        if (program, called) != (PROGRAM, procedure):
            return False
        if procedure != LOOKUP:
            caller.answer(program, called, serial)
        for _unused in range(MOST_LINGERING):
            lingering.give(caller)
        if procedure == LOOKUP:
            caller.answer(program, called, serial)
        return True

    return behave


def describe(xml: bytes) -> Behaviour:
    """Answer with this XML as the domain's description."""

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if (program, procedure) != (PROGRAM, XML):
            return False
        caller.transport.sendall(message(XML, REPLY, serial, string(xml)))
        return True

    return behave


def screenshot(send: Callable[[Caller, int], None]) -> Behaviour:
    """Answer calls for a screenshot like a regular libvirtd, but for the stream: `send` sends it, with this serial.

    A client that ends the stream gets an answer.
    """

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if (program, procedure) != (PROGRAM, SCREENSHOT):
            return False
        if caller.kind == STREAM:
            caller.transport.sendall(message(SCREENSHOT, STREAM, serial, b""))
        else:
            mime = OPTIONAL + string(b"image/x-portable-pixmap")
            caller.transport.sendall(message(SCREENSHOT, REPLY, serial, mime))
            send(caller, serial)
        return True

    return behave


def show(*parts: bytes) -> Behaviour:
    """Show a picture in these parts."""
    return screenshot(
        lambda caller, serial: caller.transport.sendall(b"".join(part(serial, data) for data in (*parts, b"")))
    )


show_endlessly = screenshot(lambda caller, serial: pour(caller, part(serial, bytes(200 << 10))))


@screenshot
def show_a_part(caller: Caller, serial: int) -> None:
    """Show the beginning of a picture, and nothing more."""
    caller.transport.sendall(part(serial, b"P6\n"))
    caller.hear_out()


NOT_TEXT = b"w\xff\xfe"
"""Not valid UTF-8, although libvirt declares its strings as UTF-8."""


def babble(caller: Caller, program: int, procedure: int, serial: int) -> bool:
    """Send undecodable bytes for every text: names, a description, the message of an error."""
    domain = string(NOT_TEXT) + b"u" * 16 + b"\xff" * 4
    words = {LOOKUP: domain, DEFINE: domain, XML: string(b"<domain>" + NOT_TEXT + b"</domain>")}
    if program != PROGRAM:
        return False
    if procedure in words:
        event = struct.pack(">i", 1) + domain + struct.pack(">ii", _STARTED, 0)
        caller.transport.sendall(message(LIFECYCLE, EVENT, 0, event) * 3)
        caller.transport.sendall(message(procedure, REPLY, serial, words[procedure]))
        return True
    if procedure == START:
        caller.transport.sendall(fail(procedure, serial, NOT_TEXT))
        return True
    return False


def fail_endings(caller: Caller, program: int, procedure: int, serial: int) -> bool:
    """Fail every call that ends a connection, with an error message that is not UTF-8."""
    if program != PROGRAM or procedure not in (CLOSE, DEREGISTER, UNWATCH):
        return False
    caller.transport.sendall(fail(procedure, serial, NOT_TEXT))
    return True


def fail(procedure: int, serial: int, because: bytes) -> bytes:
    """Frame the answer of a failed call: a libvirt error with only a message."""
    none, some = struct.pack(">I", 0), struct.pack(">I", 1)
    error = struct.pack(">ii", 1, 10) + some + string(because) + struct.pack(">i", 2) + none * 4
    payload = error + struct.pack(">ii", 0, 0) + none
    return _HEADER.pack(_HEADER.size + len(payload), PROGRAM, 1, procedure, REPLY, serial, _FAILED) + payload


def hold(length: int, sent: list[int]) -> Behaviour:
    """Answer a look-up with a message of this length, without its last bytes, and send nothing more.

    sent: the first entry becomes the number of bytes that the client accepted.
    """

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if program != PROGRAM or procedure != LOOKUP:
            return False
        _send_all_but_the_end(caller, message(procedure, REPLY, serial, b"\1" * (length - 28)), sent)
        caller.hear_out()
        return True

    return behave


def hold_unasked(length: int, sent: list[int]) -> Behaviour:
    """Answer the version call, then send an event of this length without its last bytes."""

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if program != PROGRAM or procedure != VERSION:
            return False
        caller.answer(program, procedure, serial)
        _send_all_but_the_end(caller, message(LIFECYCLE, EVENT, 0, b"\1" * (length - 28)), sent)
        caller.hear_out()
        return True

    return behave


def _send_all_but_the_end(caller: Caller, data: bytes, sent: list[int]) -> None:
    rest = memoryview(data)[:-4]
    while rest:
        count = caller.transport.send(rest)
        rest = rest[count:]
        sent[0] += count


def answer_agent(answer: bytes) -> Behaviour:
    """Answer with this text as the guest agent's response."""

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if program != QEMU:
            return False
        caller.transport.sendall(message(procedure, REPLY, serial, OPTIONAL + string(answer), QEMU))
        return True

    return behave


def silent_agent(caller: Caller, program: int, procedure: int, serial: int) -> bool:
    """Never answer agent commands, and answer everything else."""
    return program == QEMU


GOOD: Behaviour = deaf_to()


ATTACKS: dict[str, tuple[Behaviour, dict[str, bool]]] = {
    "never answers OPEN": (silent_from(OPEN), {}),
    "answers OPEN and keepalive, never event registration": (deaf_to(REGISTER), {}),
    "trickles bytes": (trickle, {}),
    "half a header with an impossible length": (lengthen(0x7FFFFFFF), {}),
    "floods lifecycle events": (flood(EVENTS), {}),
    "answers define, hangs start": (deaf_to(START), {}),
    "holds nearly all of 32 MiB": (hold(32 << 20, [0]), {}),
    "sends keepalives and reads no answer": (ping_from(STATE), {}),
    "16 MiB of XML": (describe(b"x" * (16 << 20)), {}),
    "sends no valid UTF-8": (babble, {}),
    "fails every call that ends a connection, without valid UTF-8": (fail_endings, {}),
    "ignores CLOSE": (deaf_to(CLOSE, DEREGISTER, UNWATCH), {}),
    "closes at once after accept": (GOOD, {"hangs_up": True}),
    "never accepts, its queue of callers full": (GOOD, {"accepts": False}),
}
"""By name: the behaviour and the options of `Hostile`."""


class Hostile:
    """A server on a Unix socket with a thread for each connection. `close` ends them all."""

    def __init__(self, path: Path, behave: Behaviour, *, hangs_up: bool = False, accepts: bool = True) -> None:
        """hangs_up: closes each connection at once. accepts: if False, its backlog stays full."""
        self.uri = f"qemu+unix:///session?socket={path}"
        self.calls: list[int] = []
        """The procedures that clients have called, over all connections."""
        self._behave, self._hangs_up = behave, hangs_up
        self._connections: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(0 if not accepts else 16)
        self._threads: list[threading.Thread] = []
        if accepts:
            self._spawn(self._accept)
        else:
            self._fill(str(path))

    @property
    def descriptors(self) -> int:
        """The number of open descriptors of this server."""
        return sum(sock.fileno() >= 0 for sock in (self._listener, *self._connections))

    @property
    def callers(self) -> int:
        """The number of accepted connections, including those that fill its own backlog."""
        return len(self._connections)

    def close(self) -> None:
        for sock in (self._listener, *self._connections):
            with suppress(OSError):  # already disconnected
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join()

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, name="hostile", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _fill(self, path: str) -> None:
        """Connect to this server until its backlog is full."""
        while True:
            transport = socket.socket(socket.AF_UNIX)
            self._connections.append(transport)
            transport.setblocking(False)
            try:
                transport.connect(path)
            except BlockingIOError:
                return

    def _accept(self) -> None:
        while True:
            try:
                transport, _unused = self._listener.accept()
            except OSError:
                return
            self._connections.append(transport)
            if self._hangs_up:
                transport.close()
            else:
                self._spawn(self._serve, Caller(transport))

    def _serve(self, caller: Caller) -> None:
        try:
            while True:
                program, procedure, serial = caller.receive()
                self.calls.append(procedure if program == PROGRAM else -1)
                if not self._behave(caller, program, procedure, serial):
                    caller.answer(program, procedure, serial)
        except (EOFError, OSError):
            caller.transport.close()


Spawn = Callable[..., "Hostile"]
"""Makes a server: the fixture `spawn`."""
HAS_CALL_RACE = libvirt.getVersion() < 10_004_000
"""CVE-2024-4418: when a second call wakes the thread that polls for a connection, libvirt leaves an event source behind
that points to that thread's stack. The next poll may crash. The images have a libvirt without it."""


def in_own_process(script: str, uri: str) -> subprocess.CompletedProcess[str]:
    """Run a script with a server's URI as argument in a process that may crash or hang. Blocks.

    A crash of a libvirt with CVE-2024-4418 proves nothing: the script runs again.
    """
    command = [sys.executable, "-c", script, uri]
    for _unused in range(3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=os.getcwd())
        if not (HAS_CALL_RACE and done.returncode == -signal.SIGSEGV):
            break
    return done

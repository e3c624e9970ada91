# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest under QEMU for tests: started from the launcher image's own files, driven by its serial console and QMP."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

BOOT_SECONDS = 180
"""A boot takes three seconds on an idle machine."""


class GuestProcess:
    """A running QEMU. What the guest prints collects in `console`."""

    def __init__(
        self,
        root: Path,
        scratch: Path,
        arguments: Sequence[str],
        *,
        accel: str = "tcg",
        machine: str = "q35",
        memory: int = 128,
    ) -> None:
        self._qmp_path = scratch / "qmp"
        share = root / "usr/share"
        loader = [
            str(root / "usr/lib64/ld-linux-x86-64.so.2"),
            "--library-path",
            str(root / "usr/lib/x86_64-linux-gnu"),
        ]
        program = [
            *loader,
            str(root / "usr/bin/qemu-system-x86_64"),
            "-L",
            str(share / "qemu"),
            "-L",
            str(share / "seabios"),
        ]
        fixed = [
            "-nodefaults",
            "-no-user-config",
            "-machine",
            machine,
            "-accel",
            accel,
            "-m",
            str(memory),
            "-display",
            "none",
        ]
        channels = ["-display", "none", "-serial", "stdio", "-qmp", f"unix:{self._qmp_path},server=on,wait=off"]
        self.process = subprocess.Popen(
            [*program, *fixed, *channels, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.console = ""
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while data := self.process.stdout.read1(65536):  # type: ignore[attr-defined]
            with self._news:
                self.console += data.decode(errors="replace").replace("\r", "")
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def expect(self, pattern: str, *, after: int = 0, seconds: float = BOOT_SECONDS) -> re.Match[str]:
        """Wait until the console matches, from character `after` on."""
        until = time.monotonic() + seconds
        expression = re.compile(pattern)
        with self._news:
            while (match := expression.search(self.console, after)) is None:
                remaining = until - time.monotonic()
                if remaining <= 0 or not self._reader.is_alive():
                    raise AssertionError(f"{pattern!r} did not appear on the console:\n{self.console}")
                self._news.wait(min(remaining, 1))
        return match

    def type(self, line: str) -> int:
        """Type a line; returns where the console was, for `expect(after=...)`."""
        assert self.process.stdin is not None
        position = len(self.console)
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return position

    def log_in(self) -> None:
        """Log in and silence the counter."""
        self.expect("login:")
        at = self.type("root")
        at = self.expect("Password:", after=at).end()
        self.type("virtops")
        at = self.expect("# ", after=at).end()
        self.type("counter off")
        self.expect("# ", after=at)

    def run(self, command: str) -> str:
        """Run a command in the logged-in shell and return what it printed, without what was typed and the prompt."""
        at = self.type(f"{command}; echo finished:$?")
        end = self.expect(r"\nfinished:\d+", after=at).end()
        return self.console[at:end].rpartition("echo finished:$?")[2]

    def _connect(self, connection: socket.socket) -> None:
        """Connect to QMP, which QEMU opens a moment after its start."""
        until = time.monotonic() + BOOT_SECONDS
        while True:
            try:
                connection.connect(str(self._qmp_path))
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                threading.Event().wait(0.02)
            else:
                return

    def qmp(self, command: str, **arguments: Any) -> Any:
        """Run one QMP command and return its result."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(BOOT_SECONDS)
            self._connect(connection)
            stream = connection.makefile("rwb")
            stream.readline()
            response: dict[str, Any] = {}
            for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                stream.write(json.dumps(request).encode() + b"\n")
                stream.flush()
                response = json.loads(stream.readline())
                while "return" not in response and "error" not in response:
                    response = json.loads(stream.readline())
            stream.close()
        assert "return" in response, response
        return response["return"]

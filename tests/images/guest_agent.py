# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's end of a guest agent's channel: a socket of QEMU's, as for libvirt."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ANSWER_SECONDS = 300


def channel(path: Path, name: str = "org.qemu.guest_agent.0") -> list[str]:
    """Return QEMU's arguments for a channel of that name, with its socket."""
    socket_of = ["-chardev", f"socket,id=agent,path={path},server=on,wait=off"]
    return [*socket_of, "-device", "virtio-serial-pci", "-device", f"virtserialport,chardev=agent,name={name}"]


class AgentChannel:
    """A connection to the agent."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.connect(str(path))
        self._stream = self._socket.makefile("rwb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, command: str, **arguments: Any) -> Any:
        """Put a command; return what it returns, or its error."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        self._stream.write(json.dumps(request).encode() + b"\n")
        self._stream.flush()
        response = json.loads(self._stream.readline().lstrip(b"\xff"))
        return response.get("return", response.get("error"))

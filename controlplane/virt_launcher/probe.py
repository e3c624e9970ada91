# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that the kubelet runs for a probe of the guest's agent. It asks the launcher, which knows the answer.

It runs every few seconds for each such machine, so it imports next to nothing. Only the startup probe of a migration's
target waits here for the guest, once: each failed probe is an Event of the Pod, and the kubelet emits only a few.
"""

from __future__ import annotations

import socket
import sys
import time

from controlplane.domain import layout

LIVENESS, STARTUP = "livenessProbe", "startupProbe"
ANSWER_LIMIT = 2048
PAUSE_SECONDS = 0.5
"""Between requests while the guest has not arrived."""


def main(arguments: list[str], path: str = layout.PROBE_SOCKET) -> int:
    """Run the probe of that name; return the exit code, 0 for success."""
    name = arguments[0] if arguments else ""
    code, text = answer(name, path)
    while code and name == STARTUP:
        time.sleep(PAUSE_SECONDS)
        code, text = answer(name, path)
    print(text)
    return code


def answer(name: str, path: str) -> tuple[int, str]:
    """Ask the launcher once; return the exit code and a sentence.

    A launcher that does not answer proves nothing about its guest: the guest is neither ended nor reported as ready.
    """
    try:
        code, _unused, text = ask(name, path).partition(" ")
        return int(code), text
    except (OSError, ValueError) as error:
        return 0 if name == LIVENESS else 1, f"the launcher does not answer: {error}"


def ask(name: str, path: str) -> str:
    """Return the launcher's reply: a number, a space, a sentence. OSError. The kubelet limits the time."""
    with socket.socket(socket.AF_UNIX) as launcher:
        launcher.connect(path)
        launcher.sendall(name.encode(errors="replace") + b"\n")
        reply = b""
        while len(reply) < ANSWER_LIMIT and (more := launcher.recv(ANSWER_LIMIT)):
            reply += more
    return reply.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kubelet runs in a launcher for a probe that is not the network's: it asks the launcher, which knows.

Runs every few seconds beside each such machine, so it imports next to nothing. Only for a guest that is to come from
another node it waits, once: each answer that is bad is an Event of the Pod, of which a kubelet tells a few and no more.
"""

from __future__ import annotations

import socket
import sys
import time

from controlplane.domain import layout

LIVENESS, STARTUP = "livenessProbe", "startupProbe"
ANSWER_LIMIT = 2048
PAUSE_SECONDS = 0.5
"""Between looks for a guest that is to come."""


def main(arguments: list[str], path: str = layout.PROBE_SOCKET) -> int:
    """Ask for the probe of that name; return the exit code: 0 is good."""
    name = arguments[0] if arguments else ""
    code, said = answer(name, path)
    while code and name == STARTUP:
        time.sleep(PAUSE_SECONDS)
        code, said = answer(name, path)
    print(said)
    return code


def answer(name: str, path: str) -> tuple[int, str]:
    """Ask once; return the exit code and a sentence.

    A launcher that cannot be asked proves nothing of its guest: that is no reason to end it, nor to call it ready.
    """
    try:
        code, _unused, said = ask(name, path).partition(" ")
        return int(code), said
    except (OSError, ValueError) as error:
        return 0 if name == LIVENESS else 1, f"the launcher does not answer: {error}"


def ask(name: str, path: str) -> str:
    """Return the launcher's answer: a number, a space, a sentence. OSError. The kubelet bounds the time."""
    with socket.socket(socket.AF_UNIX) as launcher:
        launcher.connect(path)
        launcher.sendall(name.encode(errors="replace") + b"\n")
        said = b""
        while len(said) < ANSWER_LIMIT and (more := launcher.recv(ANSWER_LIMIT)):
            said += more
    return said.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

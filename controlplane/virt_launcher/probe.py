# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kubelet runs in a launcher for a probe that asks the guest's agent: it asks the launcher, which does.

Runs every few seconds beside each such machine, so it imports next to nothing.
"""

from __future__ import annotations

import socket
import sys

from controlplane.domain import layout

LIVENESS = "livenessProbe"
ANSWER_LIMIT = 2048


def main(arguments: list[str], path: str = layout.PROBE_SOCKET) -> int:
    """Ask for the probe of that name; return the exit code: 0 is good.

    A launcher that cannot be asked proves nothing of its guest: that is no reason to end it, nor to call it ready.
    """
    name = arguments[0] if arguments else ""
    try:
        code, _unused, said = ask(name, path).partition(" ")
        print(said)
        return int(code)
    except (OSError, ValueError) as error:
        print(f"the launcher does not answer: {error}")
        return 0 if name == LIVENESS else 1


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

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that the kubelet runs for a probe of the guest's agent. It gets the result from the launcher.

It runs every few seconds for each machine with such a probe, so it imports very little. Only the startup probe of a
migration's target waits for the guest: each failed probe is an Event of the Pod, and the kubelet emits only a few.
"""

from __future__ import annotations

import socket
import sys
import time

from controlplane.domain import layout

LIVENESS, STARTUP = "livenessProbe", "startupProbe"
ANSWER_LIMIT = 2048
PAUSE_SECONDS = 0.5
"""Pause between requests until the guest arrives."""


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
    """Send one request to the launcher; return the exit code and a sentence.

    A launcher that does not respond proves nothing about its guest: the guest is neither ended nor reported as ready.
    """
    try:
        code, _unused, text = ask(name, path).partition(" ")
        return int(code), text
    except (OSError, ValueError) as error:
        return 0 if name == LIVENESS else 1, f"the launcher does not respond: {error}"


def ask(name: str, path: str) -> str:
    """Return the launcher's response: a number, a space, a sentence. OSError. The kubelet limits the time."""
    with socket.socket(socket.AF_UNIX) as launcher:
        launcher.connect(path)
        launcher.sendall(name.encode(errors="replace") + b"\n")
        response = b""
        while len(response) < ANSWER_LIMIT and (more := launcher.recv(ANSWER_LIMIT)):
            response += more
    return response.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

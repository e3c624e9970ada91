# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last output of ended programs of a machine. Their logs are removed with the lab, so an error quotes them."""

from __future__ import annotations

import re
from pathlib import Path

from lab.machines.machine import Machine

LINES, WIDTH = 8, 200
_DYING = re.compile(r"fatal error: |panic: |unexpected fault |F\d{4} ")
"""Start of the final message of Go and Kubernetes programs. Stacks of a thousand goroutines may follow."""


def last_words(machine: Machine) -> list[str]:
    """Return a text for each program that is down or was restarted. Empty if the machine is down."""
    return [
        f"{name} on {machine.name} ended and was started again {state.restarts} times;"
        f" its last output:\n{_last_output(machine.paths.logs / f'{name}.log')}"
        for name, state in machine.programs().items()
        if state.restarts or not (state.pid or state.held)
    ]


def _last_output(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    first = next((number for number, line in enumerate(lines) if _DYING.match(line)), None)
    shown = lines[-LINES:] if first is None else lines[first : first + LINES]
    return "\n".join(line[:WIDTH] for line in shown) or "nothing"

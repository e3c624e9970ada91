# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of `make test`: the seconds of each session (nox --report), then the failed tests (failed.py)."""

from __future__ import annotations

import json

from tests.failed import FAILED

SESSIONS = FAILED.with_name("sessions.json")


def main() -> None:
    """Print both. An interrupted run may have written neither."""
    if SESSIONS.exists():
        sessions = json.loads(SESSIONS.read_text())["sessions"]
        for session in sessions:
            print(f"{session['duration']:6.0f} s  {session['name']}: {session['result']}")
        print(f"{sum(session['duration'] for session in sessions):6.0f} s  in all")
    if FAILED.exists():
        print(FAILED.read_text(), end="")


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run commands two at a time: each has one thread, or waits half of its time.

python -m tests.two_at_a_time NAME ... runs those sessions of nox. The output of a session is printed when it has ended.
The failed sessions are named at the very end, because a CI shows the end of a log.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.failed import SHOWN_LINES, note

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 2


def shown(command: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command in the checkout and print its output; return exit code and output."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    sys.stdout.write(done.stdout)
    sys.stdout.flush()
    return done.returncode, done.stdout


def main(sessions: Sequence[str]) -> int:
    """Run sessions of nox, the first two first; 1 when one of them failed."""

    def run(name: str) -> int:
        code, output = shown([sys.executable, "-m", "nox", "--session", name])
        if code:
            note(name, output.splitlines()[-SHOWN_LINES:])
        return code

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        failed = [name for name, code in zip(sessions, pool.map(run, sessions), strict=True) if code]
    print(f"two at a time: {len(sessions) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}".rstrip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take every guard out once: python -m tests.controlplane.guards --workers 2 --only vmi/decide"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.controlplane.guards.copy import Copy
from tests.controlplane.guards.guard import Guard
from tests.controlplane.guards.listed import GUARDS
from tests.controlplane.guards.run import Verdict, judge, run_whole
from tests.controlplane.guards.tests_run import load
from tests.failed import TOLD_LINES, note


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every guard that was taken out was missed, 2 when there is none to take out."""
    parser = argparse.ArgumentParser(prog="guards", description=__doc__)
    parser.add_argument(
        "--workers", type=_positive, default=2, help="how many to take out at a time, each in its own copy"
    )
    parser.add_argument("--only", default="", help="those whose file or line contains this")
    parser.add_argument("--sample", type=_positive, help="so many, chosen at random; all of them by default")
    asked = parser.parse_args(words)
    chosen = [one for one in GUARDS if asked.only in one.file or asked.only in one.line]
    if not chosen:  # no test would be named, and pytest runs all when it is told none
        sys.stderr.write(f"guards: no guard's file or line contains {asked.only!r}\n")
        return 2
    if asked.sample:
        chosen = random.SystemRandom().sample(chosen, min(asked.sample, len(chosen)))
    missed = 0
    for verdict in take_out(chosen, asked.workers):
        said = _render(verdict)
        if not verdict.is_caught:
            missed += 1
            note("guards", said.splitlines())
        sys.stdout.write(said)
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - missed} passed, {missed} failed\n")
    return 1 if missed else 0


def _positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def take_out(guards: Sequence[Guard], workers: int) -> Iterator[Verdict]:
    """Judge guards, `workers` at a time, after their tests have been seen to be green with all of them in place."""
    with (
        tempfile.TemporaryDirectory(prefix="guards-") as directory,
        ProcessPoolExecutor(workers, get_context("fork"), _begin, (directory,)) as pool,
    ):
        tests = tuple(sorted({test for one in guards for test in one.tests}))
        wrong = pool.submit(_run_whole, tests).result()
        if wrong is not None:
            note("guards: with all of them in place", wrong.splitlines()[-TOLD_LINES:])
            raise SystemExit(f"the tests are not green with every guard in place:\n{wrong}")
        for done in as_completed([pool.submit(_judge, one) for one in guards]):
            yield done.result()


_copies: list[Copy] = []
"""The one of this worker."""


def _begin(directory: str) -> None:
    load()
    _copies.append(Copy(Path(tempfile.mkdtemp(dir=directory))))


def _run_whole(tests: tuple[str, ...]) -> str | None:
    return run_whole(_copies[0], tests)


def _judge(guard: Guard) -> Verdict:
    return judge(_copies[0], guard)


def _render(verdict: Verdict) -> str:
    what = "caught" if verdict.is_caught else "MISSED"
    text = f"{what}  {verdict.seconds:4.1f} s  {verdict.guard.id}\n    {verdict.said}\n"
    return text if verdict.is_caught else f"{text}    it is there because: {verdict.guard.because}\n"


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how surely planted bugs are found: python -m tests.controlplane.simulation.measure --seeds 30 --steps 10000

Fresh seeds each time, unless --first says where they begin. The last line counts the bugs that fewer than two thirds
of the seeds find.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.controlplane.simulation.mutants import MUTANTS, failure_of

NEEDED = 2 / 3


def look(job: tuple[str, int], steps: int) -> tuple[str, str]:
    """Run one mutant with one seed; say by what it was found, "" for not."""
    logging.disable(logging.CRITICAL)
    name, seed = job
    found = failure_of(MUTANTS[name], seed, steps) or ""
    return name, found.partition(":")[0]


def main() -> int:
    parser = argparse.ArgumentParser(prog="measure", description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=random.randrange(1000, 10**6))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="part of the names of the mutants to look at")
    asked = parser.parse_args()
    names = [name for name in MUTANTS if asked.only in name]
    jobs = [(name, asked.first + number) for name in names for number in range(asked.seeds)]
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    with ProcessPoolExecutor(asked.workers) as pool:
        for name, by in pool.map(partial(look, steps=asked.steps), jobs, chunksize=4):
            found[name][by] += 1
    missed = 0
    for name, by_what in found.items():
        count = asked.seeds - by_what.pop("", 0)
        missed += count < asked.seeds * NEEDED
        by = ", ".join(f"{what} {times}" for what, times in by_what.most_common())
        sys.stdout.write(f"{count:3} of {asked.seeds}  {name:52} {by}\n")
    sys.stdout.write(
        f"seeds {asked.first}-{asked.first + asked.seeds - 1}; {missed} of {len(names)} found too seldom\n"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how surely planted bugs are found: python -m tests.controlplane.simulation.measure --seeds 30 --steps 10000

Fresh seeds each time, unless --first says where they begin. A bug is to be found by two thirds of the seeds; no more of
them are played than tell whether it is. The last line counts the bugs that are found too seldom.
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.controlplane.simulation.mutants import MUTANTS, failure_of

NEEDED = 2 / 3


def look(seed: int, name: str, steps: int) -> str:
    """Run one mutant with one seed; say by what it was found, "" for not."""
    logging.disable(logging.CRITICAL)
    found = failure_of(MUTANTS[name], seed, steps) or ""
    return found.partition(":")[0]


def main() -> int:
    parser = argparse.ArgumentParser(prog="measure", description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=random.randrange(1000, 10**6))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="part of the names of the mutants to look at")
    asked = parser.parse_args()
    names = [name for name in MUTANTS if asked.only in name]
    needed = math.ceil(asked.seeds * NEEDED)
    seeds = range(asked.first, asked.first + asked.seeds)
    seldom = 0
    with ProcessPoolExecutor(asked.workers) as pool:
        for name in names:
            by_what: Counter[str] = Counter()
            played = 0
            while by_what.total() < needed and played - by_what.total() <= asked.seeds - needed:
                at_once = seeds[played : played + asked.workers]
                by_what.update(filter(None, pool.map(partial(look, name=name, steps=asked.steps), at_once)))
                played += len(at_once)
            seldom += by_what.total() < needed
            by = ", ".join(f"{what} {times}" for what, times in by_what.most_common())
            sys.stdout.write(f"{by_what.total():3} of {played:2}  {name:52} {by}\n")
            sys.stdout.flush()
    sys.stdout.write(f"seeds {seeds[0]}-{seeds[-1]}; {seldom} of {len(names)} found by fewer than {needed}\n")
    return 1 if seldom else 0


if __name__ == "__main__":
    sys.exit(main())

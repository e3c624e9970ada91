# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the simulation from the shell: python -m tests.controlplane.simulation --steps 10000 --seed 1 --seeds 8"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.controlplane.simulation.run import Failure, Simulation
from tests.controlplane.simulation.transit import TransitPlay
from tests.support.breach import Breach


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    steps: int
    writes: int
    faults: Counter[str]
    coverage: Counter[tuple[str, str, str]]
    failure: str = ""


def run_seed(seed: int, steps: int) -> Result:
    logging.disable(logging.CRITICAL)
    simulation = Simulation(seed)
    text = ""
    try:
        simulation.run(steps)
    except Failure as failure:
        text = str(failure)
    world = simulation.world
    return Result(seed, world.steps, world.store.version, world.faults, world.coverage, text)


def move_machines(seed: int, steps: int) -> Result:
    """Run the simulation of migrations alone."""
    logging.disable(logging.CRITICAL)
    play, text = TransitPlay(seed), ""
    try:
        play.run(steps)
    except Breach as breach:
        text = str(breach)
    ended = Counter({f"migrations {phase}": count for phase, count in play.outcomes.items()})
    return Result(seed, play.steps, play.writes, Counter(play.struck) + ended, Counter(), text)


def main() -> int:
    """Return 0 when no invariant was violated and nothing stayed stuck."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="random steps to take, for each seed")
    parser.add_argument("--seed", type=int, default=1, help="where all randomness comes from: the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, counted from the first")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--play", choices=("all", "migrations"), default="all", help="migrations: machines that move")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    began = time.perf_counter()
    run = partial(move_machines if arguments.play == "migrations" else run_seed, steps=arguments.steps)
    if arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers) as pool:
            results = list(pool.map(run, seeds))
    else:
        results = list(map(run, seeds))
    sys.stdout.write(_report(results, time.perf_counter() - began))
    broken = [item for item in results if item.failure]
    for item in broken:
        play = "" if arguments.play == "all" else f" PLAY={arguments.play}"
        again = f"make simulate STEPS={arguments.steps} SEED={item.seed}{play}"
        sys.stderr.write(f"{item.failure}\n\nrepeat with: {again}\n")
    return 1 if broken else 0


def _report(results: Iterable[Result], seconds: float) -> str:
    results = tuple(results)
    faults: Counter[str] = sum((result.faults for result in results), Counter())
    coverage: Counter[tuple[str, str, str]] = sum((result.coverage for result in results), Counter())
    broken = [result.seed for result in results if result.failure]
    lines = ["faults: " + ", ".join(f"{kind} {count}" for kind, count in faults.most_common())]
    pairs: dict[tuple[str, str], list[str]] = {}
    for (before, after, fault), count in sorted(coverage.items()):
        pairs.setdefault((before, after), []).append(f"{fault} {count}")
    lines += [f"{before or 'none'} -> {after}: {', '.join(found)}" for (before, after), found in pairs.items()]
    outcome = f"broken: seeds {broken}" if broken else "nothing broken, nothing stuck"
    lines.append(
        f"{len(results)} seeds: {sum(result.steps for result in results)} steps, {faults.total()} faults, "
        f"{sum(result.writes for result in results)} writes, {len(pairs)} kinds of phase change after "
        f"{len({fault for _unused, _unused, fault in coverage})} faults, {seconds:.1f} s: {outcome}"
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

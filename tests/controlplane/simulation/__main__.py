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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.controlplane.simulation.machines.scenario import MachineScenario
from tests.controlplane.simulation.migrations.scenario import MigrationScenario
from tests.support.breach import Breach

MIGRATION_STEPS = 10
"""One migration step for this many steps of machines: a migration step does more."""


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    steps: int
    writes: int
    faults: Counter[str]
    phases: Counter[str]
    failure: str = ""


def run_seed(seed: int, steps: int, *, scenario: str) -> Result:
    """Run one seed. scenario: "migrations", or "all" for both scenarios."""
    logging.disable(logging.CRITICAL)
    result = _run(MigrationScenario(seed), steps if scenario == "migrations" else steps // MIGRATION_STEPS)
    if scenario == "migrations" or result.failure:
        return result
    machines = _run(MachineScenario(seed), steps)
    return Result(
        seed,
        result.steps + machines.steps,
        result.writes + machines.writes,
        result.faults + machines.faults,
        result.phases + machines.phases,
        machines.failure,
    )


def _run(scenario: MachineScenario | MigrationScenario, steps: int) -> Result:
    failure = ""
    try:
        scenario.run(steps)
    except Breach as breach:
        failure = str(breach)
    return Result(scenario.seed, scenario.steps, scenario.writes, scenario.faults, scenario.phases, failure)


def main() -> int:
    """Return 0 when no invariant was violated and nothing stayed stuck."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="random steps to take, for each seed")
    parser.add_argument("--seed", type=int, default=1, help="where all randomness comes from: the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, counted from the first")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument(
        "--scenario", choices=("all", "migrations"), default="all", help="migrations: machines that move"
    )
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    began = time.perf_counter()
    run = partial(run_seed, steps=arguments.steps, scenario=arguments.scenario)
    if arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers) as pool:
            results = list(pool.map(run, seeds))
    else:
        results = list(map(run, seeds))
    sys.stdout.write(_report(results, time.perf_counter() - began))
    broken = [result for result in results if result.failure]
    for result in broken:
        scenario = "" if arguments.scenario == "all" else f" SCENARIO={arguments.scenario}"
        again = f"make simulate STEPS={arguments.steps} SEED={result.seed}{scenario}"
        sys.stderr.write(f"{result.failure}\n\nrepeat with: {again}\n")
    return 1 if broken else 0


def _report(results: list[Result], seconds: float) -> str:
    faults: Counter[str] = sum((result.faults for result in results), Counter())
    phases: Counter[str] = sum((result.phases for result in results), Counter())
    broken = [result.seed for result in results if result.failure]
    outcome = f"broken: seeds {broken}" if broken else "nothing broken, nothing stuck"
    steps, writes = sum(result.steps for result in results), sum(result.writes for result in results)
    lines = (
        "faults: " + ", ".join(f"{kind} {count}" for kind, count in faults.most_common()),
        "phases: " + ", ".join(f"{kind} {count}" for kind, count in sorted(phases.items())),
        f"{len(results)} seeds: {steps} steps, {faults.total()} faults, {writes} writes, {seconds:.1f} s: {outcome}",
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

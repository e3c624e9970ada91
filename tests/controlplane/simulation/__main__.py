# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the simulation from the shell: python -m tests.controlplane.simulation --steps 10000 --seed 1"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.controlplane.simulation.world import Failure, Simulation


def main() -> int:
    """Return 0 when no invariant was broken and nothing stayed stuck."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="random steps to take")
    parser.add_argument("--seed", type=int, default=1, help="where all randomness comes from")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    began = time.perf_counter()
    simulation = Simulation(asked.seed)
    try:
        simulation.run(asked.steps)
    except Failure as failure:
        sys.stderr.write(f"{failure}\n\nrepeat with: make simulate STEPS={asked.steps} SEED={asked.seed}\n")
        return 1
    seen = sum(1 for count in simulation.oracles.phases_seen.values() if count)
    sys.stdout.write(
        f"seed {asked.seed}: {asked.steps} steps, {simulation.faults} faults, {simulation.store.version} writes, "
        f"{seen} kinds of phase change, {time.perf_counter() - began:.1f} s: nothing broken, nothing stuck\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of a lab from nothing: three nodes Ready, the first Pod, a repair, its deletion.

The lower bound is etcd and kube-apiserver alone, alternating in the same run: a slow machine slows down both.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from lab import Lab
from lab.cluster import faults
from tests.lab.real import a_pod, run_pod

ROUNDS = 3
AT_MOST = {"ready": 2.4, "first_pod": 2.8, "mended": 0.8, "down": 0.4}
"""In lower bounds, each of them 2 to 3 s."""


def run(report: Callable[[dict[str, Any]], None]) -> None:
    """Report the medians beside the lower bound; raise AssertionError when a limit is exceeded."""
    lab = Lab(f"bench-lab-{os.getpid()}")
    floors: list[float] = []
    took: dict[str, list[float]] = {name: [] for name in AT_MOST}
    for _round in range(ROUNDS):
        floors.append(_seconds(lambda: lab.up(0, controllers=False)))
        lab.down()
        for name, seconds in _life(lab).items():
            took[name].append(seconds)
    floor = statistics.median(floors)
    ratios = {name: statistics.median(seconds) / floor for name, seconds in took.items()}
    for name, ratio in ratios.items():
        figure = {
            "name": f"lab-{name}",
            "value": round(statistics.median(took[name]), 2),
            "unit": "s",
            "rounds": ROUNDS,
        }
        peer = {"peer": round(floor, 2), "peer_is": "etcd and kube-apiserver alone, same run"}
        report({**figure, **peer, "ratio": round(ratio, 2), "target": AT_MOST[name]})
    missed = {name: round(ratio, 2) for name, ratio in ratios.items() if ratio > AT_MOST[name]}
    assert not missed, f"in floors, at most {AT_MOST}: {missed}"


def _life(lab: Lab) -> dict[str, float]:
    """Create and delete a lab of three nodes; return the seconds of each part."""
    try:
        began = time.monotonic()
        lab.up(3)
        ready = time.monotonic() - began
        run_pod(lab, a_pod("first"))
        first_pod = time.monotonic() - began
        faults.kill_node(lab, "node-3")
        mended = _seconds(lab.up)
    finally:
        down = _seconds(lab.down)
    return {"ready": ready, "first_pod": first_pod, "mended": mended, "down": down}


def _seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began

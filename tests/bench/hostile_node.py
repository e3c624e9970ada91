# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hostile-node: one launcher of twenty on a real node runs each attack in turn; the effect on the others is measured.

The other nineteen are stopped, started, paused and resumed continuously, one after the other. The baseline is measured
in the same run, alternating with each attack while the machine of the attacker is halted: other load is in both. At the
end virt-handler and virt-node have no more threads and descriptors than at the start.

HOSTILE_NODE_SECONDS: the time for all attacks together.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import cycle
from typing import Any

from tests.bench.captured import captured
from tests.bench.footprint import GUARDED, Footprint, footprints, only, settled
from tests.bench.seats import Seats, a_resting_vm
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed

SECONDS = 600.0
VMS = 20
WAYS = (
    "answers define, hangs start",
    "never answers OPEN",
    "trickles bytes",
    "half a header with the longest length",
    "floods lifecycle events",
    "floods messages that nobody asked for",
    "16 MiB of XML",
    "deeply nested XML",
    "ignores CLOSE",
    "closes at once after accept",
    "never accepts, its queue of callers full",
    "is off again after every start",
)
TURNS = 2
"""How often an attack alternates with rest."""
RATIO_AT_MOST = 2.0
NAMESPACE, HOSTILE = "hostile-node", "vm-0"

Report = Callable[[dict[str, Any]], None]
Taken = dict[tuple[str, str, bool], list[float]]
"""Seconds by attack, verb, and whether the attack was running."""


class Neighbours:
    """The machines that are not hostile: each in turn reports, stops and starts."""

    def __init__(self, cluster: Cluster, seats: Seats, names: list[str]) -> None:
        self._cluster, self._seats = cluster, seats
        self._names = cycle(names)
        self.taken: Taken = defaultdict(list)
        self.shares: dict[bool, list[float]] = {True: [], False: []}
        """virt-handler's CPU share in each slice, by whether the attack was running."""

    def warm_up(self, turns: int) -> None:
        """Run uncounted rounds, so that memory and threads have reached their usual size."""
        for _unused in range(turns):
            self._take_turn(defaultdict(list), ("", False))

    def work(self, way: str, *, is_attacked: bool, seconds: float) -> None:
        """Run rounds for a while."""
        began, used = time.monotonic(), self._used()
        while time.monotonic() < began + seconds:
            self._take_turn(self.taken, (way, is_attacked))
        self.shares[is_attacked].append((self._used() - used) / (time.monotonic() - began))

    def _take_turn(self, taken: Taken, under: tuple[str, bool]) -> None:
        name, (way, is_attacked) = next(self._names), under
        taken[way, "report", is_attacked] += self._seats.report(name)
        taken[way, "stop", is_attacked].append(self._seats.stop(name))
        taken[way, "start", is_attacked].append(self._seats.start(name))

    def _used(self) -> float:
        return only(footprints(self._cluster, self._cluster.nodes[0]), "virt_handler").processor_seconds


def run(report: Report) -> None:
    """Measure on its own cluster. Raises AssertionError after the last report when a limit is exceeded."""
    seconds = float(os.environ.get("HOSTILE_NODE_SECONDS") or SECONDS)
    with deployed("soak") as cluster:
        seats = Seats(cluster, NAMESPACE)
        names = _start_all(cluster, seats)
        neighbours = Neighbours(cluster, seats, [name for name in names if name != HOSTILE])
        neighbours.warm_up(VMS)
        before = footprints(cluster, cluster.nodes[0])
        try:
            _soak(cluster, seats, neighbours, seconds)
        except Exception:  # keep the figures of an hour when its last minute fails
            _report_times(report, neighbours.taken, seconds)
            raise
        seats.start(HOSTILE)
        after = settled(lambda: footprints(cluster, cluster.nodes[0]), lambda processes: not _grown(before, processes))
    failures = [
        *_report_times(report, neighbours.taken, seconds),
        *_report_census(report, before, after, neighbours.shares),
    ]
    if failures:
        raise AssertionError("; ".join(failures))


def _start_all(cluster: Cluster, seats: Seats) -> list[str]:
    names = [f"vm-{number}" for number in range(VMS)]
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.apply(*(a_resting_vm(name, NAMESPACE, runStrategy="Always") for name in names))
    seats.wait_running(VMS)
    return names


def _soak(cluster: Cluster, seats: Seats, neighbours: Neighbours, seconds: float) -> None:
    """Run all attacks."""
    slice_seconds = seconds / len(WAYS) / TURNS / 2
    seats.stop(HOSTILE)
    for way in WAYS:
        for _unused in range(TURNS):
            neighbours.work(way, is_attacked=False, seconds=slice_seconds)
            with captured(cluster, seats, HOSTILE, NAMESPACE) as launcher:
                launcher.attack(way)
                neighbours.work(way, is_attacked=True, seconds=slice_seconds)
                print(f"hostile-node: {way}: {launcher.rest()}", file=sys.stderr, flush=True)


def _report_times(report: Report, taken: Taken, seconds: float) -> list[str]:
    """Report each verb; return those that exceed the limit."""
    failures = []
    for verb in ("start", "stop", "report"):
        attacked, usual = (
            [seconds_ for way in WAYS for seconds_ in taken[way, verb, is_attacked]] for is_attacked in (True, False)
        )
        if not attacked or not usual:
            continue
        ratio = statistics.median(attacked) / statistics.median(usual)
        by_way = {way: _ratio(taken[way, verb, True], taken[way, verb, False]) for way in WAYS}
        report(
            {
                "name": f"hostile-node-{verb}",
                "value": round(statistics.median(attacked), 3),
                "unit": "s",
                "p95": _p95(attacked),
                "max": round(max(attacked), 3),
                "usual": round(statistics.median(usual), 3),
                "usual_p95": _p95(usual),
                "usual_max": round(max(usual), 3),
                "samples": [len(attacked), len(usual)],
                "seconds": seconds,
                "ratio": round(ratio, 2),
                "ratio_p95": _ratio([_p95(attacked)], [_p95(usual)]),
                "ratio_by_way": by_way,
                "target": RATIO_AT_MOST,
            }
        )
        if ratio > RATIO_AT_MOST:
            failures.append(f"{verb} took {ratio:.2f} times as long as usual")
    return failures


def _ratio(attacked: list[float], usual: list[float]) -> float | None:
    return round(statistics.median(attacked) / statistics.median(usual), 2) if attacked and usual else None


def _p95(seconds: list[float]) -> float:
    return round(statistics.quantiles(seconds, n=20)[-1], 3) if len(seconds) > 1 else round(seconds[0], 3)


def _report_census(
    report: Report, before: list[Footprint], after: list[Footprint], shares: dict[bool, list[float]]
) -> list[str]:
    for part in GUARDED:
        first, last = only(before, part), only(after, part)
        report(
            {
                "name": f"hostile-node-{part.replace('_', '-')}",
                "threads": [first.threads, last.threads],
                "descriptors": [first.descriptors, last.descriptors],
                "rss_mib": [round(process.rss_kib / 1024, 1) for process in (first, last)],
                "pss_mib": [round(process.pss_kib / 1024, 1) for process in (first, last)],
                "is_same_process": first.pid == last.pid,
                "unit": "before, after",
            }
        )
    usual, attacked = (statistics.median(shares[is_attacked]) for is_attacked in (False, True))
    report(
        {
            "name": "hostile-node-processor",
            "value": round(attacked * 100, 1),
            "unit": "% of a core, virt-handler",
            "usual": round(usual * 100, 1),
            "max": round(max(shares[True]) * 100, 1),
        }
    )
    return _grown(before, after)


def _grown(before: list[Footprint], after: list[Footprint]) -> list[str]:
    """Return what has grown. A process that was replaced has lost its resources: that counts too."""
    growth = []
    for part in GUARDED:
        first, last = only(before, part), only(after, part)
        if first.pid != last.pid:
            growth.append(f"{part} was started again")
        resources = {"threads": (first.threads, last.threads), "descriptors": (first.descriptors, last.descriptors)}
        growth += [
            f"{part} has {last_count} {resource}, it had {first_count}"
            for resource, (first_count, last_count) in resources.items()
            if last_count > first_count
        ]
    return growth

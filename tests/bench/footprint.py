# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources of our processes on a node: threads, descriptors, memory, CPU time, from /proc; without limits."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.cluster import Cluster

PARTS = ("virt_handler", "virt_node", "virt_controller", "virt_api")
GUARDED = ("virt_handler", "virt_node")
"""The processes that run once per node."""
_TICKS = os.sysconf("SC_CLK_TCK")
_READ = """
import json, os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline").read().split(chr(0))
        if "-m" not in words or not words[words.index("-m") + 1].startswith("controlplane."):
            continue
        part = words[words.index("-m") + 1].partition(".")[2]
        if not os.path.basename(words[0]).startswith("python"):  # an init in front of it has the same words
            continue
        sizes = dict(line.split(":") for line in open(f"/proc/{pid}/smaps_rollup").read().splitlines()[1:])
        stat = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        found.append({
            "part": part,
            "pid": int(pid),
            "threads": len(os.listdir(f"/proc/{pid}/task")),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "rss_kib": int(sizes["Rss"].split()[0]),
            "pss_kib": int(sizes["Pss"].split()[0]),
            "ticks": int(stat[11]) + int(stat[12]),
        })
    except FileNotFoundError:
        continue
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Footprint:
    """One process at one moment."""

    part: str
    pid: int
    threads: int
    descriptors: int
    rss_kib: int
    pss_kib: int
    ticks: int

    @property
    def processor_seconds(self) -> float:
        """User and system time since its start."""
        return self.ticks / _TICKS


def footprints(cluster: Cluster, node: str) -> list[Footprint]:
    """Return the processes of our components on a node, without launchers."""
    processes = [Footprint(**values) for values in json.loads(cluster.on_node(node, _READ))]
    return sorted(
        (process for process in processes if process.part in PARTS),
        key=lambda process: (PARTS.index(process.part), process.pid),
    )


def only(processes: list[Footprint], part: str) -> Footprint:
    """Return the process of a component that runs once per node."""
    (footprint,) = (footprint for footprint in processes if footprint.part == part)
    return footprint


def settled(look: Callable[[], list[Footprint]], is_as_wanted: Callable[[list[Footprint]], bool]) -> list[Footprint]:
    """Look until the result is as wanted, at most a minute; return the last result."""
    deadline = time.monotonic() + 60
    while not is_as_wanted(latest := look()) and time.monotonic() < deadline:
        time.sleep(1)
    return latest

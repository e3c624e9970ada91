# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who reads the wall clock, and what for: all of it, as a list.

The wall clock steps: whoever counts with it how long something has lasted ends it at once, or never. So it is read for
times that others read in objects and logs, and for what certificates say; everything that lasts is counted by
Clock.monotonic(). Another reader is another line in here, with its reason.
"""

from __future__ import annotations

import ast
from collections import Counter

from tests.controlplane.guards.copy import ROOT

CODE = ROOT / "controlplane"
WALL = ("clock.now", ".utcnow", ".today", "datetime.now", "time.time", "time.time_ns")
"""How what reads it ends, called or handed on. An event loop's time() is none, nor is a time that a world has."""

READERS = {
    "engine/clock.py": (1, "the clock itself"),
    "kube/leader.py": (3, "renewTime and acquireTime of the Lease, which others read and we do not count with"),
    "kube/lease.py": (1, "renewTime of the node's Lease"),
    "virt_api/pairs.py": (1, "validity of certificates"),
    "virt_api/server.py": (2, "validity of certificates"),
    "virt_api/tls.py": (1, "validity of certificates"),
    "virt_controller/certificates/run.py": (2, "validity of certificates"),
    "virt_controller/kubevirt/reconciler.py": (1, "times of conditions"),
    "virt_controller/pool/reconciler.py": (1, "times of conditions"),
    "virt_controller/quarantine/reconciler.py": (1, "the time that is the mark of a node"),
    "virt_controller/replicaset/reconciler.py": (1, "times of conditions"),
    "virt_controller/tell.py": (2, "times of Events"),
    "virt_controller/vm/reconciler.py": (1, "times of conditions, the back-off that a status tells"),
    "virt_controller/vmi/reconciler.py": (2, "times of conditions and phases, of the instance and of its Pod"),
    "virt_handler/__main__.py": (2, "the node's heartbeat annotation, validity of certificates"),
    "virt_handler/power.py": (1, "times of Events"),
    "virt_controller/workload_update/reconciler.py": (2, "failed migrations, the last batch; bounded by the pauses"),
    "virt_controller/evacuation/reconciler.py": (1, "times at which migrations failed; bounded by the back-off"),
    "virt_controller/migration/apply.py": (1, "when a migration ended"),
    "virt_controller/migration/reconciler.py": (1, "times of phases"),
    "virt_controller/orphan/reconciler.py": (1, "when a migration ended"),
    "virt_handler/incoming/reconciler.py": (2, "times of migrations"),
    "virt_handler/vmi/reconciler.py": (1, "times of conditions and phases"),
    "virt_handler/vmi/writes.py": (1, "when a migration began"),
}


def test_the_wall_clock_is_read_for_what_is_listed_and_for_nothing_that_lasts() -> None:
    found: Counter[str] = Counter()
    for path in CODE.rglob("*.py"):
        parts = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Attribute)]
        found[str(path.relative_to(CODE))] = sum(ast.unparse(part).endswith(WALL) for part in parts)
    assert {where: count for where, count in found.items() if count} == {
        where: count for where, (count, _unused) in READERS.items()
    }

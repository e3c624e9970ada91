# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler of node-1 may write about a migration, as its source and as its target, as a table.

The writers of the fields: docs/adr/0016. The names are VMIs: on which node they are, whether the migration has begun.
"""

from __future__ import annotations

from typing import Any

from tests.controlplane.policies.handler_rows import NOT_MINE, THEIR_FIELD, Row, status
from tests.controlplane.policies.replay import VMIS, Json

STAMP = "2026-01-01T00:00:00Z"
HANDED: Json = {
    "migrationUid": "5d307ca9-0000-0000-0000-000000000000",
    "sourcePod": "virt-launcher-a",
    "targetPod": "virt-launcher-b",
    "migrationConfiguration": {"progressTimeout": 150},
}
OUT: Json = {**HANDED, "sourceNode": "node-1", "targetNode": "node-2"}
IN: Json = {**HANDED, "sourceNode": "node-2", "targetNode": "node-1"}
BEGUN: Json = {"startTimestamp": STAMP}
MOVING: dict[str, tuple[str, Json]] = {
    "leaving": ("node-1", OUT),
    "half-gone": ("node-1", OUT | BEGUN),
    "failed-to-go": ("node-1", OUT | {"completed": True, "failed": True}),
    "coming": ("node-2", IN),
    "half-here": ("node-2", IN | BEGUN),
    "gone-by": ("node-2", {**HANDED, "sourceNode": "node-2", "targetNode": "node-3"}),
    "never-handed": ("node-1", {}),
}
"""Migrating VMIs: their node and their migration state."""
ENDED: Json = {"completed": True, "failed": True, "failureReason": "x", "endTimestamp": STAMP}
TELLS: Json = {
    "targetNodeAddress": "10.0.0.1",
    "targetDirectMigrationNodePorts": {"40000": 0},
    "targetNodeDomainDetected": True,
    "targetNodeDomainReadyTimestamp": STAMP,
}
MAY_CHANGE = "of this migration (status.migrationState) virt-handler of node"
NOT_BEGUN = "a migration that was not begun has moved nothing"


def says(name: str, words: str | None, **changed: Any) -> Row:
    return status(f"{VMIS}/{name}/status", words, migrationState=changed)


def both(words: str, **changed: Any) -> dict[str, Row]:
    """The source and the target are refused, before and after the start of the migration."""
    names = ("leaving", "half-gone", "coming", "half-here")
    return {f"{', '.join(changed)} of one {name}": says(name, words, **changed) for name in names}


MIGRATION_ROWS: dict[str, Row] = {
    "the source begins": says("leaving", None, mode="PreCopy", **BEGUN),
    "the source gives up before": says("leaving", None, **ENDED),
    "the source has moved it": says("half-gone", None, completed=True, endTimestamp=STAMP),
    "the source ends it": says("half-gone", None, abortStatus="Succeeded", **ENDED),
    "the target says where it listens": says("coming", None, **TELLS),
    "the target gives up before": says("coming", None, **ENDED),
    "the target has all of it": says("half-here", None, **TELLS),
    "moved before it began, by the source": says("leaving", NOT_BEGUN, completed=True),
    "begun and moved at once": says("leaving", NOT_BEGUN, completed=True, **BEGUN),
    "moved before it began, by the target": says("coming", NOT_BEGUN, completed=True),
    "moved, by the target": says("half-here", MAY_CHANGE, completed=True),
    "ended after the start, by the target": says("half-here", MAY_CHANGE, **ENDED),
    "begun, by the target": says("coming", MAY_CHANGE, **BEGUN),
    "not begun after all": says("half-gone", MAY_CHANGE, startTimestamp=None),
    "begun at another time": says("half-gone", MAY_CHANGE, startTimestamp="2027-01-01T00:00:00Z"),
    "the source says what the target has": says("half-gone", MAY_CHANGE, targetNodeDomainReadyTimestamp=STAMP),
    "the source says where the target listens": says("leaving", MAY_CHANGE, targetNodeAddress="10.0.0.1"),
    "one that is over, moved after all": says("failed-to-go", MAY_CHANGE, failed=None),
    "one that is over, begun": says("failed-to-go", MAY_CHANGE, **BEGUN),
    "one that nobody handed over": says("never-handed", MAY_CHANGE, **BEGUN),
    "one that nobody handed over, moved": says("never-handed", MAY_CHANGE, completed=True, failed=True),
    "all of it forgotten": status(f"{VMIS}/half-gone/status", MAY_CHANGE, migrationState=None),
    "one that goes elsewhere": says("gone-by", NOT_MINE, **TELLS),
    "the target takes it": status(
        f"{VMIS}/half-here/status", f"status.nodeName of a VMI: it is {THEIR_FIELD}", nodeName="node-1"
    ),
    "the target says that it runs": status(f"{VMIS}/half-here/status", "may not", phase="Failed"),
    "the target says how it is": status(f"{VMIS}/half-here/status", "status.guestOSInfo", guestOSInfo={"name": "x"}),
    "the target says that it is paused": status(
        f"{VMIS}/half-here/status", "status.conditions", conditions=[{"type": "Paused", "status": "True"}]
    ),
    "a very long reason": says("leaving", "Too long", **ENDED | {"failureReason": "x" * 1025}),
    **both(MAY_CHANGE, migrationUid="another"),
    **both(MAY_CHANGE, sourceNode="node-9"),
    **both(MAY_CHANGE, targetNode="node-9"),
    **both(MAY_CHANGE, sourcePod="x"),
    **both(MAY_CHANGE, targetPod="x"),
    **both(MAY_CHANGE, sourcePodUID="x"),
    **both(MAY_CHANGE, targetPodUID="x"),
    **both(MAY_CHANGE, abortRequested=True),
    **both(MAY_CHANGE, migrationPolicyName="x"),
    **both(MAY_CHANGE, migrationConfiguration={"progressTimeout": 0}),
}

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May a launcher Pod be evicted: judged from Pod, instance and configuration. Pure; who asks and answers: evictions.

An eviction that is let through ends the guest within its grace period. The words and codes are upstream's, which
`kubectl drain` and deschedulers know: 429 means that the same request may be taken later.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.condition_types import LIVE_MIGRATABLE

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.pod import Pod, sanitize
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

KEPT = (
    "VMI of this Pod does not let it go now; its evictionStrategy, its conditions and its status say why. "
    "Stop it to let its node go"
)
_TRIGGERED = "Eviction triggered evacuation of VMI"
"""The descheduler knows it by these words."""
TRIGGERED = f"{_TRIGGERED} of this Pod"
_IN_PROGRESS = "Evacuation in progress: "
LIVE_MIGRATE, IF_POSSIBLE, EXTERNAL, NONE = "LiveMigrate", "LiveMigrateIfPossible", "External", "None"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The Pod may go."""


@dataclass(frozen=True, slots=True)
class Denied:
    """It may not go now. The text says why."""

    why: str
    to_anybody: str = KEPT
    """For who has not proven to be the API server: nothing that whoever names a Pod does not know."""


@dataclass(frozen=True, slots=True)
class Marked:
    """It may not go, and the instance is to be marked as one that is to leave this node."""

    node: str
    why: str
    to_anybody: str = TRIGGERED


Judgement = Allowed | Denied | Marked


def judge_eviction(pod: Pod, vmi: VirtualMachineInstance | None, usual: str | None) -> Judgement:
    """Judge the eviction of a Pod.

    vmi: the one that controls it, None if it is gone. usual: the strategy of one that names none.

    A guest is given up for a word that is understood, or not at all.
    """
    if vmi is None or pod.owner is None or pod.owner.uid != vmi.metadata.uid:
        return Allowed()
    if pod.is_over or is_final(vmi.status.phase) or vmi.metadata.deletion_timestamp is not None:
        return Allowed()
    return _by_strategy(pod, vmi, usual)


def _by_strategy(pod: Pod, vmi: VirtualMachineInstance, usual: str | None) -> Judgement:
    match vmi.spec.eviction_strategy or usual or NONE:
        case "None":
            return Allowed()
        case "External":
            return _leave(pod, vmi)
        case "LiveMigrate" | "LiveMigrateIfPossible" if _is_migratable(vmi):
            return _leave(pod, vmi)
        case "LiveMigrateIfPossible":
            return Allowed()
        case "LiveMigrate":
            return Denied(
                f"VMI {_name(vmi)} is configured with an eviction strategy but is not live-migratable{_because(vmi)}; "
                "stop it to let its node go"
            )
        case other:
            return Denied(
                f"VMI {_name(vmi)} has the eviction strategy {other[:64]!r}, which this version does not know"
            )


def _leave(pod: Pod, vmi: VirtualMachineInstance) -> Judgement:
    node = pod.spec.node_name
    if not node or vmi.status.node_name not in ("", node):
        return Denied(_why_elsewhere(pod, vmi))
    triggered = f'{_TRIGGERED} "{_name(vmi)}"'
    if vmi.status.evacuation_node_name == node:
        return Denied(f"{_IN_PROGRESS}{triggered}", f"{_IN_PROGRESS}{TRIGGERED}")
    return Marked(node, triggered)


def _why_elsewhere(pod: Pod, vmi: VirtualMachineInstance) -> str:
    moving = vmi.status.migration_state
    if moving is not None and moving.has_moved and moving.source_pod_uid == pod.metadata.uid:
        return f"VMI {_name(vmi)} has left this Pod, which goes by itself; evict it again if it does not"
    return f"Eviction request for target Pod: VMI {_name(vmi)} is on its way to it; evict it again when it has arrived"


def _is_migratable(vmi: VirtualMachineInstance) -> bool:
    return conditions.is_true(vmi.status.conditions, LIVE_MIGRATABLE)


def _because(vmi: VirtualMachineInstance) -> str:
    said = conditions.find(vmi.status.conditions, LIVE_MIGRATABLE)
    return f" ({sanitize(said.message)})" if said is not None and said.message else ""


def _name(vmi: VirtualMachineInstance) -> str:
    return f"{vmi.metadata.namespace}/{vmi.metadata.name}"

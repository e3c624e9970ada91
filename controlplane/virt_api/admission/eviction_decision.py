# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a launcher Pod may be evicted: decided from Pod, VMI and configuration. Pure; eviction_review does the I/O.

An allowed eviction ends the guest within its grace period. Messages and codes are upstream's, which `kubectl drain` and
deschedulers know: 429 means that the same request may succeed later.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.condition_types import LIVE_MIGRATABLE

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.pod import Pod, sanitize
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

DENIED = (
    "the VMI of this Pod does not allow an eviction now; see its evictionStrategy, its conditions and its status. "
    "Stop it to free its node"
)
_TRIGGERED = "Eviction triggered evacuation of VMI"
"""The descheduler looks for these words."""
TRIGGERED = f"{_TRIGGERED} of this Pod"
_IN_PROGRESS = "Evacuation in progress: "
LIVE_MIGRATE, IF_POSSIBLE, EXTERNAL, NONE = "LiveMigrate", "LiveMigrateIfPossible", "External", "None"


@dataclass(frozen=True, slots=True)
class Allow:
    """The Pod may be evicted."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The Pod may not be evicted now."""

    message: str
    public_message: str = DENIED
    """For callers that are not known to be the API server: says nothing that the Pod's name does not say."""


@dataclass(frozen=True, slots=True)
class Evacuate:
    """The Pod may not be evicted; the VMI is to be evacuated from this node instead."""

    node: str
    message: str
    public_message: str = TRIGGERED


Decision = Allow | Deny | Evacuate


def decide_eviction(pod: Pod, vmi: VirtualMachineInstance | None, default_strategy: str | None) -> Decision:
    """Decide about the eviction of a Pod.

    vmi: the Pod's owner, None if it is gone. default_strategy: of VMIs without one.

    An unknown strategy denies: only a value that we understand may end a guest.
    """
    if vmi is None or pod.owner is None or pod.owner.uid != vmi.metadata.uid:
        return Allow()
    if pod.is_over or is_final(vmi.status.phase) or vmi.metadata.deletion_timestamp is not None:
        return Allow()
    return _by_strategy(pod, vmi, default_strategy)


def _by_strategy(pod: Pod, vmi: VirtualMachineInstance, default_strategy: str | None) -> Decision:
    match vmi.spec.eviction_strategy or default_strategy or NONE:
        case "None":
            return Allow()
        case "External":
            return _evacuate(pod, vmi)
        case "LiveMigrate" | "LiveMigrateIfPossible" if _is_migratable(vmi):
            return _evacuate(pod, vmi)
        case "LiveMigrateIfPossible":
            return Allow()
        case "LiveMigrate":
            return Deny(
                f"VMI {_name(vmi)} is configured with an eviction strategy but is not live-migratable"
                f"{_live_migratable_message(vmi)}; stop it to free its node"
            )
        case other:
            return Deny(f"VMI {_name(vmi)} has the eviction strategy {other[:64]!r}, which this version does not know")


def _evacuate(pod: Pod, vmi: VirtualMachineInstance) -> Decision:
    node = pod.spec.node_name
    if not node or vmi.status.node_name not in ("", node):
        return Deny(_not_on_this_node(pod, vmi))
    triggered = f'{_TRIGGERED} "{_name(vmi)}"'
    if vmi.status.evacuation_node_name == node:
        return Deny(f"{_IN_PROGRESS}{triggered}", f"{_IN_PROGRESS}{TRIGGERED}")
    return Evacuate(node, triggered)


def _not_on_this_node(pod: Pod, vmi: VirtualMachineInstance) -> str:
    migration = vmi.status.migration_state
    if migration is not None and migration.has_moved and migration.source_pod_uid == pod.metadata.uid:
        return f"VMI {_name(vmi)} has left this Pod, which ends by itself; evict it again if it does not"
    return f"Eviction request for target Pod: VMI {_name(vmi)} is migrating to it; evict it again after the migration"


def _is_migratable(vmi: VirtualMachineInstance) -> bool:
    return conditions.is_true(vmi.status.conditions, LIVE_MIGRATABLE)


def _live_migratable_message(vmi: VirtualMachineInstance) -> str:
    condition = conditions.find(vmi.status.conditions, LIVE_MIGRATABLE)
    return f" ({sanitize(condition.message)})" if condition is not None and condition.message else ""


def _name(vmi: VirtualMachineInstance) -> str:
    return f"{vmi.metadata.namespace}/{vmi.metadata.name}"

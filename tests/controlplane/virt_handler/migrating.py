# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrating VMIs, as the two nodes see them."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from tests.controlplane.virt_handler.builders import NODE, OTHER, POD_UID, vmi_object

MIGRATION, TARGET_POD = "mmmm0000-1111", "tttt0000-1111-2222-3333-444444444444"
BEGUN = "2026-01-01T00:00:10Z"
BY_MIGRATION, MIGRATED = State(Life.PAUSED, "migration"), State(Life.SHUT_OFF, "migrated")
WHOLE = State(Life.PAUSED, "user")


def migrating_object(
    *, deleting: bool = False, owner: str = NODE, pods: tuple[str, ...] = (POD_UID,), **state: Any
) -> Any:
    """Return a running VMI with a migration. owner: its status.nodeName. state: more fields of migrationState."""
    body = vmi_object("Running", deleting=deleting)
    body["status"] |= {
        "interfaces": state.pop("interfaces", []),
        "nodeName": owner,
        "activePods": dict.fromkeys(pods, owner),
        "migrationState": {
            "migrationUid": MIGRATION,
            "sourceNode": NODE,
            "targetNode": OTHER,
            "sourcePodUID": POD_UID,
            "targetPodUID": TARGET_POD,
            **state,
        },
    }
    return body


def migrating(*, paused: bool = False, **state: Any) -> VirtualMachineInstance:
    """Return the decoded VMI. paused: a user paused it."""
    body = migrating_object(**state)
    if paused:
        body["status"]["conditions"] = [{"type": "Paused", "status": "True", "reason": "PausedByUser"}]
    return decode_vmi(body)


def ready(**state: Any) -> VirtualMachineInstance:
    """The target waits for the source."""
    return migrating(targetNodeAddress="10.244.1.9", targetDirectMigrationNodePorts={"4711": 0}, **state)


def begun(**state: Any) -> VirtualMachineInstance:
    """The source has written that the migration starts."""
    return ready(**{"startTimestamp": BEGUN, "mode": "PreCopy", **state})


def stopping(**state: Any) -> VirtualMachineInstance:
    """The source has written that it pauses the guest to send the rest."""
    return begun(**{"mode": "Paused", **state})


def come(**state: Any) -> VirtualMachineInstance:
    """The run belongs to the target now."""
    fields = {"owner": OTHER, "pods": (TARGET_POD,), "completed": True, "endTimestamp": BEGUN}
    return begun(**{**fields, **state})

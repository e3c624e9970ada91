# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a VMI that workload updates need. There are few, because there may be ten thousand VMIs. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from kubevirt_api.condition_types import LIVE_MIGRATABLE
from kubevirt_api.names import OUTDATED_LAUNCHER

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition, Node, ObjectMeta
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.phase import RUNNING, is_final
from controlplane.api.objects.resources import Key


class _Status(Node, frozen=True, kw_only=True):
    phase: str = ""
    node_name: str = ""
    evacuation_node_name: str = ""
    launcher_container_image_version: str = ""
    active_pods: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    migration_state: MigrationState | None = None


class _Vmi(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()


_decoder = msgspec.json.Decoder(_Vmi)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    key: Key
    uid: str
    version: str
    """resourceVersion of the bytes."""
    created: str = ""
    node: str = ""
    pod: str = ""
    """UID of the Pod that has the guest; "" if there is none, or more than one."""
    is_outdated: bool = False
    """Its launcher is not the deployed one."""
    is_labelled: bool = False
    """It has the label of an outdated launcher."""
    is_running: bool = False
    """Its guest runs and is to keep running."""
    is_migratable: bool = False
    is_leaving: bool = False
    """It is migrating or being evacuated."""
    reason: str = ""
    """Why it has to be migrated although its launcher is up to date."""


def read_instance(raw: bytes, launcher_image: str) -> InstanceView:
    """Decode the view. Raises msgspec.DecodeError."""
    vmi = _decoder.decode(raw)
    meta, status = vmi.metadata, vmi.status
    image, migration = status.launcher_container_image_version, status.migration_state
    is_moving = migration is not None and migration.is_under_way
    return InstanceView(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        created=meta.creation_timestamp or "",
        node=status.node_name,
        pod=next(iter(status.active_pods)) if len(status.active_pods) == 1 else "",
        is_outdated=bool(image) and image != launcher_image and not is_final(status.phase),
        is_labelled=OUTDATED_LAUNCHER in meta.labels,
        is_running=status.phase == RUNNING and meta.deletion_timestamp is None,
        is_migratable=conditions.is_true(status.conditions, LIVE_MIGRATABLE),
        is_leaving=is_moving or bool(status.evacuation_node_name),
    )

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates a migration for this control plane once: all leaders derive the same name for it."""

from __future__ import annotations

from kubevirt_api.names import MIGRATION_FINALIZER, VMI_NAME

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key
from controlplane.api.vmi_label import vmi_label_value
from controlplane.engine.errors import AlreadyExists, Conflict, Forbidden
from controlplane.engine.ports import Api, Json


async def create_once(api: Api, body: Json, *, uid: str, version: str) -> None:
    """Create the migration, unless the VMI has changed since the decision (uid, version: its UID and resourceVersion).

    Raises ApiError. Conflict: observe again. Forbidden: a migration of another VMI has the name. A user may have chosen
    it on purpose, so other VMIs must not wait for this one.
    """
    meta, vmi = body["metadata"], Key(body["metadata"]["namespace"], body["spec"]["vmiName"])
    current = (await api.get(VIRTUAL_MACHINE_INSTANCE, vmi))["metadata"]
    if (current["uid"], current["resourceVersion"]) != (uid, version):
        raise Conflict(f"cannot move VirtualMachineInstance {vmi}: it has changed meanwhile")
    try:
        await api.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, vmi.namespace, body)
    except AlreadyExists as error:
        # The migration is another leader's, or ours, from a write whose response was lost.
        existing = await api.get(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key(vmi.namespace, meta["name"]))
        if existing["spec"].get("vmiName") != vmi.name:
            raise Forbidden(
                f"cannot move VirtualMachineInstance {vmi}: its migration must have the name {meta['name']}, but a "
                "migration of another VMI has it; delete that one"
            ) from error
        raise Conflict(str(error)) from error


def build_migration(vmi: Key, name: str, annotations: dict[str, str], priority: str) -> Json:
    """Build a migration. annotations: they name the cause."""
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE_MIGRATION.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE_MIGRATION.kind,
        "metadata": {
            "name": name,
            "namespace": vmi.namespace,
            "labels": {VMI_NAME: vmi_label_value(vmi.name)},
            "annotations": annotations,
            "finalizers": [MIGRATION_FINALIZER],
        },
        "spec": {"vmiName": vmi.name, "priority": priority},
    }

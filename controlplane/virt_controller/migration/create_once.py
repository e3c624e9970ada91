# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a migration that this control plane wants, once, whoever leads: all choose the same name for the same one."""

from __future__ import annotations

from kubevirt_api.names import MIGRATION_FINALIZER, VMI_NAME

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key
from controlplane.api.vmi_label import vmi_label_value
from controlplane.engine.errors import AlreadyExists, Conflict, Forbidden
from controlplane.engine.ports import Api, Json


async def create_once(api: Api, body: Json, *, uid: str, version: str) -> None:
    """Make it, unless its instance is not by the API server's word as it was decided on (uid, resourceVersion).

    ApiError; Conflict: look again. Forbidden: its name is taken by another instance's migration, whose owner may have
    chosen it so; nobody else waits for that.
    """
    meta, vmi = body["metadata"], Key(body["metadata"]["namespace"], body["spec"]["vmiName"])
    found = (await api.get(VIRTUAL_MACHINE_INSTANCE, vmi))["metadata"]
    if (found["uid"], found["resourceVersion"]) != (uid, version):
        raise Conflict(f"cannot move VirtualMachineInstance {vmi}: it has changed meanwhile")
    try:
        await api.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, vmi.namespace, body)
    except AlreadyExists as error:
        # Another leader's, or ours from a write whose answer was lost: look at it, then decide again.
        there = await api.get(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key(vmi.namespace, meta["name"]))
        if there["spec"].get("vmiName") != vmi.name:
            raise Forbidden(
                f"cannot move VirtualMachineInstance {vmi}: the name that its migration must have, {meta['name']}, is "
                "another instance's migration's; delete that one"
            ) from error
        raise Conflict(str(error)) from error


def build_migration(vmi: Key, name: str, mark: dict[str, str], priority: str) -> Json:
    """Build a migration of an instance. mark: annotations that say for what cause it is made."""
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE_MIGRATION.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE_MIGRATION.kind,
        "metadata": {
            "name": name,
            "namespace": vmi.namespace,
            "labels": {VMI_NAME: vmi_label_value(vmi.name)},
            "annotations": mark,
            "finalizers": [MIGRATION_FINALIZER],
        },
        "spec": {"vmiName": vmi.name, "priority": priority},
    }

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virtualmachines/migrate: makes a migration of a machine's instance, as whoever asks may have it made."""

from __future__ import annotations

import logging

from kubevirt_api.names import MIGRATION_FINALIZER, VMI_NAME

from controlplane.api.objects.decode import DecodeError, decode_vm, decode_vmi
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.resources import (
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.vmi_label import vmi_label_value
from controlplane.engine.errors import ApiError, NotFound, Throttled, Unavailable
from controlplane.kube.access_review import User
from controlplane.kube.client import Client
from controlplane.virt_api.admission.migratable import why_not
from controlplane.virt_api.http.response import Answer, Json, accepted, api_failure, conflict, failure, not_found
from controlplane.virt_api.subresources.lifecycle import own_instance
from controlplane.virt_api.subresources.options import MigrateOptions

log = logging.getLogger(__name__)

KIND = VIRTUAL_MACHINE.kind.lower()
NAMED = "kubevirt-migrate-vm-"
_NOT_RUNNING = "VM is not running; start it, or wait until its instance is Running"


async def migrate(client: Client, key: Key, options: MigrateOptions, user: User) -> Answer:
    """Have the instance of a machine migrated, once the caller's rights are known. Raises ApiError.

    What our account writes is not judged by our hooks, so it is held to the same here.
    """
    try:
        vm = decode_vm(await client.get(VIRTUAL_MACHINE, key))
        vmi = await _read_instance(client, key, vm)
    except NotFound:
        return not_found(KIND, key.name)
    except DecodeError as error:
        return failure(422, f"{KIND} {key} or its instance cannot be read: {error}")
    if vmi is None:
        return not_found(VIRTUAL_MACHINE_INSTANCE.kind.lower(), key.name)
    if vmi.status.phase != RUNNING:
        return conflict(KIND, key.name, _NOT_RUNNING)
    because = await why_not(client, key)
    return _refused(because) if because else await _make(client, key, options, user)


async def _read_instance(client: Client, key: Key, vm: VirtualMachine) -> VirtualMachineInstance | None:
    try:
        return own_instance(vm, decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key)))
    except NotFound:
        return None


async def _make(client: Client, key: Key, options: MigrateOptions, user: User) -> Answer:
    body = build_migration(key, options)
    try:
        made = await client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, key.namespace, body, dry_run=options.dry_run)
    except (Throttled, Unavailable) as error:
        return api_failure(error)
    except ApiError as error:
        return _refused(str(error))
    name = made.get("metadata", {}).get("name")
    log.info("migration made", extra={"key": key, "name_of_it": name, "user": user.name, "dry_run": options.dry_run})
    return accepted()


def build_migration(key: Key, options: MigrateOptions) -> Json:
    """Build the migration of an instance; its name is made by the API server. Pure."""
    selector = {"addedNodeSelector": dict(options.added_node_selector)} if options.added_node_selector else {}
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE_MIGRATION.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE_MIGRATION.kind,
        "metadata": {
            "generateName": NAMED,
            "namespace": key.namespace,
            "labels": {VMI_NAME: vmi_label_value(key.name)},
            "finalizers": [MIGRATION_FINALIZER],
        },
        "spec": {"vmiName": key.name, **selector},
    }


def _refused(because: str) -> Answer:
    """Say it by the code that upstream says it by, which is no fault of the server's."""
    return failure(500, f"Internal error occurred: {because}")

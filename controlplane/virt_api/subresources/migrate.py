# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virtualmachines/migrate: creates a migration of a VM's instance for an authorized caller."""

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
from controlplane.virt_api.admission.migratable import why_not_migratable
from controlplane.virt_api.http.response import Json, Response, accepted, api_failure, conflict, failure, not_found
from controlplane.virt_api.subresources.lifecycle import own_instance
from controlplane.virt_api.subresources.options import MigrateOptions

log = logging.getLogger(__name__)

KIND = VIRTUAL_MACHINE.kind.lower()
NAME_PREFIX = "kubevirt-migrate-vm-"
_NOT_RUNNING = "VM is not running; start it, or wait until its instance is Running"


async def migrate(client: Client, key: Key, options: MigrateOptions, user: User) -> Response:
    """Create a migration of a VM's instance for an authorized caller. Raises ApiError.

    Our webhooks do not review what our own account writes, so the same rule is applied here.
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
    because = await why_not_migratable(client, key)
    return _refused(because) if because else await _create(client, key, options, user)


async def _read_instance(client: Client, key: Key, vm: VirtualMachine) -> VirtualMachineInstance | None:
    try:
        return own_instance(vm, decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key)))
    except NotFound:
        return None


async def _create(client: Client, key: Key, options: MigrateOptions, user: User) -> Response:
    body = build_migration(key, options)
    try:
        created = await client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, key.namespace, body, dry_run=options.dry_run)
    except (Throttled, Unavailable) as error:
        return api_failure(error)
    except ApiError as error:
        return _refused(str(error))
    extra = {"key": key, "migration": created.get("metadata", {}).get("name"), "user": user.name}
    log.info("migration created", extra={**extra, "dry_run": options.dry_run})
    return accepted()


def build_migration(key: Key, options: MigrateOptions) -> Json:
    """Build the migration of a VMI; the API server generates its name. Pure."""
    selector = {"addedNodeSelector": dict(options.added_node_selector)} if options.added_node_selector else {}
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE_MIGRATION.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE_MIGRATION.kind,
        "metadata": {
            "generateName": NAME_PREFIX,
            "namespace": key.namespace,
            "labels": {VMI_NAME: vmi_label_value(key.name)},
            "finalizers": [MIGRATION_FINALIZER],
        },
        "spec": {"vmiName": key.name, **selector},
    }


def _refused(because: str) -> Response:
    """Respond 500, as upstream does, although it is no error of the server."""
    return failure(500, f"Internal error occurred: {because}")

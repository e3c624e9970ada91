# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a VMI can be migrated now, read from the API server.

Both ways to create a migration ask this: the webhook and the subresource migrate. Messages are upstream's, which
scripts look for. Two migrations that are created at the same moment may both pass; virt-controller runs only one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from kubevirt_api.condition_types import LIVE_MIGRATABLE
from kubevirt_api.names import VMI_NAME

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.migration import FINAL, VirtualMachineInstanceMigration
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.vmi_label import vmi_label_value
from controlplane.engine.errors import NotFound
from controlplane.kube.client import Client, Selection

MAX_PAGE_BYTES = 4 * 1024 * 1024
PAGE_LIMIT = 20
"""Migrations per page: one VMI has a handful."""


async def why_not_migratable(client: Client, key: Key) -> str | None:
    """Return why a VMI cannot be migrated now; None if it can. Raises ApiError, DecodeError."""
    try:
        vmi = decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key))
    except NotFound:
        return f'the VMI "{key}" does not exist; name one that runs, in the namespace of its migration'
    if because := why_unfit(vmi):
        return because
    async for migration in _migrations(client, key):
        if migration.spec.vmi_name == key.name and migration.status.phase not in FINAL:
            name, uid = migration.metadata.name, migration.metadata.uid
            return (
                f"in-flight migration detected. Active migration job ({uid}) is currently already in "
                f"progress for VMI {key.name}. Wait for it, or delete {name}, which cancels it"
            )
    return None


def why_unfit(vmi: VirtualMachineInstance) -> str | None:
    """Return why a VMI's own status forbids a migration; None if it does not, or is not known yet. Pure."""
    if is_final(vmi.status.phase):
        return "Cannot migrate VMI in finalized state."
    condition = conditions.find(vmi.status.conditions, LIVE_MIGRATABLE)
    if condition is not None and condition.status == "False":
        return f"Cannot migrate VMI, Reason: {sanitize(condition.reason)}, Message: {sanitize(condition.message)}"
    return None


async def _migrations(client: Client, vmi: Key) -> AsyncIterator[VirtualMachineInstanceMigration]:
    """Read the migrations with the VMI's label. VMIs with long names may share a label value."""
    label = f"{VMI_NAME}={vmi_label_value(vmi.name)}"
    selection, token = Selection(VIRTUAL_MACHINE_INSTANCE_MIGRATION, vmi.namespace, label_selector=label), ""
    while True:
        page = await client.list_page(selection, token, limit=PAGE_LIMIT, most_bytes=MAX_PAGE_BYTES)
        for item in page.items:
            try:
                yield decode(item, VirtualMachineInstanceMigration)
            except DecodeError:
                continue  # no controller acts on it either
        token = page.continue_token
        if not token:
            return

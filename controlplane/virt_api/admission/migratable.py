# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May an instance be migrated now: read from the quorum and judged, for who makes a migration, in whatever way.

The words are upstream's, which scripts look for. What passes here may meet another migration all the same, made at the
same moment; virt-controller lets only one of them go on.
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

MOST_BYTES = 4 * 1024 * 1024
"""Of a page: of one instance's migrations there are a handful."""
LIMIT = 20


async def why_not(client: Client, vmi: Key) -> str | None:
    """Say why an instance cannot be migrated now; None if it can. Raises ApiError, DecodeError."""
    try:
        found = decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, vmi))
    except NotFound:
        return f'the VMI "{vmi}" does not exist; name one that runs, in the namespace of its migration'
    if because := why_unfit(found):
        return because
    async for one in _migrations(client, vmi):
        if one.spec.vmi_name == vmi.name and one.status.phase not in FINAL:
            return (
                f"in-flight migration detected. Active migration job ({one.metadata.uid}) is currently already in "
                f"progress for VMI {vmi.name}. Wait for it, or delete {one.metadata.name}, which cancels it"
            )
    return None


def why_unfit(vmi: VirtualMachineInstance) -> str | None:
    """Say why an instance is not one that migrates; None if it is one, or nobody has said yet. Pure."""
    if is_final(vmi.status.phase):
        return "Cannot migrate VMI in finalized state."
    said = conditions.find(vmi.status.conditions, LIVE_MIGRATABLE)
    if said is not None and said.status == "False":
        return f"Cannot migrate VMI, Reason: {sanitize(said.reason)}, Message: {sanitize(said.message)}"
    return None


async def _migrations(client: Client, vmi: Key) -> AsyncIterator[VirtualMachineInstanceMigration]:
    """Read those that are labelled as the instance's; names that are long may share a label."""
    label = f"{VMI_NAME}={vmi_label_value(vmi.name)}"
    selection, token = Selection(VIRTUAL_MACHINE_INSTANCE_MIGRATION, vmi.namespace, label_selector=label), ""
    while True:
        page = await client.list_page(selection, token, limit=LIMIT, most_bytes=MOST_BYTES)
        for raw in page.items:
            try:
                yield decode(raw, VirtualMachineInstanceMigration)
            except DecodeError:
                continue  # nobody acts upon it
        token = page.continue_token
        if not token:
            return

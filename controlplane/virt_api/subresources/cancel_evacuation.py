# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""evacuate/cancel: takes back the evacuation of a VMI that an eviction has requested (admission/eviction_review)."""

from __future__ import annotations

import logging

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.node import Node, drain_taint
from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import Conflict, NotFound
from controlplane.kube.access_review import User
from controlplane.kube.client import Client
from controlplane.virt_api.http.response import Response, conflict, failure, not_found
from controlplane.virt_api.subresources.options import EvacuationOptions

log = logging.getLogger(__name__)

KIND = VIRTUAL_MACHINE_INSTANCE.kind.lower()
ATTEMPTS = 4
"""The write may conflict with a controller's status write now and then."""


async def cancel_evacuation(
    client: Client, key: Key, options: EvacuationOptions, user: User, drain_taint_key: str = ""
) -> Response:
    """Remove evacuationNodeName for an authorized caller; without one, nothing changes. Raises ApiError.

    drain_taint_key: as configured, of the taint that evacuates all machines of a node.
    """
    for _unused in range(ATTEMPTS):
        try:
            vmi = decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key))
            if (refusal := await _refusal(client, key, vmi, options, drain_taint_key)) is not None:
                return refusal
            if not vmi.status.evacuation_node_name:
                return Response()
            await client.patch(
                VIRTUAL_MACHINE_INSTANCE,
                key,
                {"status": {"evacuationNodeName": None}},
                subresource="status",
                resource_version=vmi.metadata.resource_version,
                dry_run=options.dry_run,
            )
        except NotFound:
            return not_found(KIND, key.name)
        except DecodeError as error:
            return failure(422, f"{KIND} {key} cannot be read: {error}")
        except Conflict:
            continue
        log.info("evacuation cancelled", extra={"key": key, "user": user.name, "dry_run": options.dry_run})
        return Response()
    return conflict(KIND, key.name, "the object keeps changing; please try again")


async def _refusal(
    client: Client, key: Key, vmi: VirtualMachineInstance, options: EvacuationOptions, drain_taint_key: str
) -> Response | None:
    node = vmi.status.evacuation_node_name
    if because := await _why_evacuated_anyway(client, vmi, drain_taint_key):
        return failure(400, because)
    if node and options.node and options.node != node:
        return conflict(KIND, key.name, f"its evacuation is from node {node}, not {options.node}")
    return None


async def _why_evacuated_anyway(client: Client, vmi: VirtualMachineInstance, drain_taint_key: str) -> str | None:
    """Return why a cancelled evacuation would start again; None if it would not, or the node is gone."""
    node = vmi.status.evacuation_node_name or vmi.status.node_name
    if not node:
        return None
    try:
        tainted = decode(await client.get(NODE, Key("", node)), Node)
    except NotFound:
        return None
    if not tainted.is_drained(drain_taint_key):
        return None
    text = ":".join(drain_taint(drain_taint_key))
    return f'Node "{node}" has NodeDrainTaintKey "{text}", which evacuates all its machines; remove the taint'

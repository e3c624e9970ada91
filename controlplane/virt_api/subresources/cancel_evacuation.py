# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""evacuate/cancel: takes off the mark of a node that an instance is to leave, which an eviction has set (evictions)."""

from __future__ import annotations

import logging

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import Conflict, NotFound
from controlplane.kube.access_review import User
from controlplane.kube.client import Client
from controlplane.virt_api.http.response import Answer, conflict, failure, not_found
from controlplane.virt_api.subresources.options import EvacuationOptions

log = logging.getLogger(__name__)

KIND = VIRTUAL_MACHINE_INSTANCE.kind.lower()
DRAIN = {"key": "kubevirt.io/drain", "effect": "NoSchedule"}
"""The taint by which a node is left without any mark, as in versions of KubeVirt before there were marks."""
ATTEMPTS = 4
"""A mark may meet a status write now and then."""


async def cancel_evacuation(client: Client, key: Key, options: EvacuationOptions, user: User) -> Answer:
    """Take the mark off, once the caller's rights are known; of an instance without one nothing changes. ApiError."""
    for _unused in range(ATTEMPTS):
        try:
            vmi = decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key))
            if (refusal := await _refusal(client, key, vmi, options)) is not None:
                return refusal
            if not vmi.status.evacuation_node_name:
                return Answer()
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
        return Answer()
    return conflict(KIND, key.name, "the object keeps changing; please try again")


async def _refusal(client: Client, key: Key, vmi: VirtualMachineInstance, options: EvacuationOptions) -> Answer | None:
    marked = vmi.status.evacuation_node_name
    if because := await _why_in_vain(client, vmi):
        return failure(400, because)
    if marked and options.node and options.node != marked:
        return conflict(KIND, key.name, f"it is to leave node {marked}, not {options.node}")
    return None


async def _why_in_vain(client: Client, vmi: VirtualMachineInstance) -> str | None:
    """Say why it would leave its node all the same; None if it would not, or that node is gone."""
    node = vmi.status.evacuation_node_name or vmi.status.node_name
    if not node:
        return None
    try:
        taints = (await client.get(NODE, Key("", node))).get("spec", {}).get("taints") or ()
    except NotFound:
        return None
    if not any({**one, **DRAIN} == one for one in taints):
        return None
    text = f"{DRAIN['key']}:{DRAIN['effect']}"
    return f'Node "{node}" has NodeDrainTaintKey "{text}": all machines are to leave it; take the taint off'

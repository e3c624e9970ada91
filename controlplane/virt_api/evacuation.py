# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""evacuate/cancel: takes off the mark of a node that an instance is to leave, which an eviction has set (evictions)."""

from __future__ import annotations

import logging

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import Conflict, NotFound
from controlplane.kube.access import User
from controlplane.kube.client import Client
from controlplane.virt_api.answer import Answer, conflict, failure, not_found
from controlplane.virt_api.options import EvacuationOptions

log = logging.getLogger(__name__)

KIND = VIRTUAL_MACHINE_INSTANCE.kind.lower()
ATTEMPTS = 4
"""A mark may meet a status write now and then."""


async def cancel_evacuation(client: Client, key: Key, options: EvacuationOptions, user: User) -> Answer:
    """Take the mark off, once the caller's rights are known; of an instance without one nothing changes. ApiError."""
    for _unused in range(ATTEMPTS):
        try:
            vmi = decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key))
            marked = vmi.status.evacuation_node_name
            if not marked:
                return Answer()
            if options.node and options.node != marked:
                return conflict(KIND, key.name, f"it is to leave node {marked}, not {options.node}")
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

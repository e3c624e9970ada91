# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""guestosinfo, userlist, filesystemlist: asks the guest's agent by way of virt-handler. Responses are upstream's.

Every failure is a 500 of plain text, as upstream: clients know no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import to_builtins

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.guest_info import GuestAgentInfo
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import ApiError
from controlplane.kube.client import Client
from controlplane.links.handler import About, Details, Inquire, NotDone
from controlplane.virt_api.http.response import Json, Response, document, plain_failure
from controlplane.virt_api.subresources.handler_client import HandlerClient, NotSentError, OutcomeUnknownError
from controlplane.virt_api.subresources.power import NOT_RUNNING, PowerRefusedError, guest_of

_VERSION = "kubevirt.io/v1"


async def get_guest_info(client: Client, handlers: HandlerClient, key: Key, about: About) -> Response:
    """Ask the guest of a VMI for an authorized caller. Never raises ApiError."""
    try:
        vmi = decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key))
        if vmi.status.phase != RUNNING:
            raise PowerRefusedError(NOT_RUNNING)
        answer = await handlers.call(key.namespace, Inquire(guest_of(vmi), about))
    except (ApiError, DecodeError, PowerRefusedError, NotSentError, OutcomeUnknownError) as error:
        return plain_failure(f"cannot ask the guest of virtualmachineinstance {key}: {error}")
    match answer:
        case Details(info=info):
            return document(_SHAPES[about](info))
        case NotDone(text=why):
            return plain_failure(sanitize(why) or "its virt-handler gives no reason")
        case _:
            return plain_failure("its virt-handler answered another question")


def _all(info: GuestAgentInfo) -> Json:
    return {"kind": "VirtualMachineInstanceGuestAgentInfo", "apiVersion": _VERSION, **to_builtins(info)}


def _list(kind: str, items: Sequence[Any]) -> Json:
    return {"kind": kind, "apiVersion": _VERSION, "metadata": {}, "items": to_builtins(items)}


_SHAPES: dict[About, Callable[[GuestAgentInfo], Json]] = {
    "guestosinfo": _all,
    "userlist": lambda info: _list("VirtualMachineInstanceGuestOSUserList", info.user_list),
    "filesystemlist": lambda info: _list("VirtualMachineInstanceFileSystemList", info.fs_info.disks),
}

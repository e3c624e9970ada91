# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""guestosinfo, userlist, filesystemlist: has a guest's agent asked by its node, and gives the answer upstream's shape.

Whatever stands in the way is a 500 of plain text, as upstream: clients know no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_never

from msgspec import to_builtins

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.guest_info import GuestAgentInfo
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import ApiError
from controlplane.kube.client import Client
from controlplane.links.handler import About, Details, Done, Inquire, NotDone
from controlplane.virt_api.http.response import Answer, Json, document
from controlplane.virt_api.subresources.handler_client import Handlers, NotAnsweredError, NotAskedError
from controlplane.virt_api.subresources.power import NOT_RUNNING, PowerRefusedError, name_guest

_VERSION = "kubevirt.io/v1"


async def inquire(client: Client, handlers: Handlers, key: Key, about: About) -> Answer:
    """Ask the guest of an instance, once the caller's rights are known. Never raises ApiError."""
    try:
        vmi = decode_vmi(await client.get(VIRTUAL_MACHINE_INSTANCE, key))
        if vmi.status.phase != RUNNING:
            raise PowerRefusedError(NOT_RUNNING)
        said = await handlers.ask(key.namespace, Inquire(name_guest(vmi), about))
    except (ApiError, DecodeError, PowerRefusedError, NotAskedError, NotAnsweredError) as error:
        return _untold(f"cannot ask the guest of virtualmachineinstance {key}: {error}")
    match said:
        case Details(told=told):
            return document(_SHAPES[about](told))
        case NotDone(text=why):
            return _untold(sanitize(why) or "its virt-handler does not say why")
        case Done():
            return _untold("its virt-handler answered another question")
        case _:
            assert_never(said)


def _untold(why: str) -> Answer:
    return Answer(500, f"{why}\n".encode(), "text/plain")


def _whole(told: GuestAgentInfo) -> Json:
    return {"kind": "VirtualMachineInstanceGuestAgentInfo", "apiVersion": _VERSION, **to_builtins(told)}


def _list(kind: str, items: Sequence[Any]) -> Json:
    return {"kind": kind, "apiVersion": _VERSION, "metadata": {}, "items": to_builtins(items)}


_SHAPES: dict[About, Callable[[GuestAgentInfo], Json]] = {
    "guestosinfo": _whole,
    "userlist": lambda told: _list("VirtualMachineInstanceGuestOSUserList", told.user_list),
    "filesystemlist": lambda told: _list("VirtualMachineInstanceFileSystemList", told.fs_info.disks),
}

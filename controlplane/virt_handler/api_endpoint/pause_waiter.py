# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until a VMI's status reports a user's pause. Only then virt-handler responds to the request.

libvirt does not distinguish a user's pause from a migration's (docs/adr/0016). The VMI's condition does, and it
survives a restart of virt-handler and a migration.
"""

from __future__ import annotations

import asyncio

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache


class PauseWaiter:
    """Watches the cache of this node's VMIs."""

    def __init__(self, vmis: Cache) -> None:
        self._vmis = vmis
        self._waiting: dict[Key, dict[asyncio.Future[bool], str]] = {}
        """The waiting requests by VMI, each with the UID of its VMI."""
        vmis.subscribe(self._changed)

    async def wait(self, key: Key, uid: str) -> bool:
        """Wait until the status reports the pause. False: the VMI has ended or was deleted, or `end` was called."""
        if (result := self._result(key, uid)) is not None:
            return result
        reported: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, {})
        waiting[reported] = uid
        try:
            return await reported
        finally:
            del waiting[reported]
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]

    def end(self, key: Key) -> None:
        """End all waits: another request has changed the guest since."""
        for reported in self._waiting.pop(key, {}):
            if not reported.done():
                reported.set_result(False)

    def _result(self, key: Key, uid: str) -> bool | None:
        raw = self._vmis.get(key)
        try:
            vmi = None if raw is None else decode_vmi(raw)
        except DecodeError:  # a later version may be readable
            return None
        if vmi is None or vmi.metadata.uid != uid or is_final(vmi.status.phase):
            return False
        return True if vmi.is_user_pause_reported else None

    def _changed(self, key: Key, _before: bytes | None, __: bytes | None) -> None:
        for reported, uid in self._waiting.get(key, {}).items():
            if not reported.done() and (result := self._result(key, uid)) is not None:
                reported.set_result(result)

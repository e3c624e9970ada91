# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until a VMI's status reports a user's pause: the request is answered only then.

libvirt does not tell a user's pause from a migration's (docs/adr/0016). The VMI's condition does, also after a restart
and on the node to which the guest moves.
"""

from __future__ import annotations

import asyncio

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.virt_handler.vmi.migration_source import is_user_pause_reported


class PauseWaiter:
    """Of this node's instances, as the cache has them."""

    def __init__(self, vmis: Cache) -> None:
        self._vmis = vmis
        self._waiting: dict[Key, dict[asyncio.Future[bool], str]] = {}
        """By instance: whoever waits, and the UID that is meant."""
        vmis.subscribe(self._changed)

    async def wait(self, key: Key, uid: str) -> bool:
        """Return when it is told; False when it never will be: the instance is over or gone, or it was ended."""
        if (told := self._is_told(key, uid)) is not None:
            return told
        word: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, {})
        waiting[word] = uid
        try:
            return await word
        finally:
            del waiting[word]
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]

    def end(self, key: Key) -> None:
        """Something else was done to the guest since: whoever waits for this word waits no longer."""
        for word in self._waiting.pop(key, {}):
            if not word.done():
                word.set_result(False)

    def _is_told(self, key: Key, uid: str) -> bool | None:
        raw = self._vmis.get(key)
        try:
            vmi = None if raw is None else decode_vmi(raw)
        except DecodeError:
            return None
        if vmi is None or vmi.metadata.uid != uid or is_final(vmi.status.phase):
            return False
        return True if is_user_pause_reported(vmi) else None

    def _changed(self, key: Key, _before: bytes | None, __: bytes | None) -> None:
        for word, uid in self._waiting.get(key, {}).items():
            if not word.done() and (told := self._is_told(key, uid)) is not None:
                word.set_result(told)

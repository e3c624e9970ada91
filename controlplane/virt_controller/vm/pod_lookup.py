# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads from the API server whether the launcher Pod of a run that has succeeded was evicted. It decides nothing."""

from __future__ import annotations

from contextlib import suppress

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import NotFound
from controlplane.engine.ports import Api
from controlplane.virt_controller.vmi.controller_state import pod_keys


class PodLookup:
    """The last result for each VMI, by key and UID. A restart loses it, and the Pod is read again."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._evicted: dict[Key, tuple[str, bool]] = {}

    def is_evicted(self, key: Key, uid: str) -> bool | None:
        """Return the result for this VMI; None if its Pod was not read."""
        known_uid, is_evicted = self._evicted.get(key, ("", False))
        return is_evicted if known_uid == uid else None

    def forget(self, key: Key) -> None:
        self._evicted.pop(key, None)

    async def read(self, vmi: VirtualMachineInstance) -> None:
        """Read the Pod that had the guest. One that is gone was evicted: the control plane deletes it after its VMI."""
        granted = vmi.status.active_pods
        is_evicted = bool(granted)
        for key in pod_keys(vmi):
            with suppress(NotFound):
                pod = decode(await self._api.get(POD, key), Pod)
                if pod.uid in granted:
                    is_evicted = pod.is_evicted
        self._evicted[vmi.metadata.key] = vmi.metadata.uid, is_evicted

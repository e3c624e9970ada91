# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet's last report about a granted Pod: a process that has seen it must not report the end as unknown."""

from __future__ import annotations

import msgspec

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.read_your_writes import ReadYourWritesCache
from tests.controlplane.simulation.answers import Asked
from tests.support.store import Json


class LastWords:
    """Per virt-controller: UIDs of granted Pods whose end it saw before they were deleted."""

    def __init__(self, pods: ReadYourWritesCache) -> None:
        self._granted: dict[Key, set[str]] = {}
        """By VMI, at its last look."""
        self._heard: set[str] = set()
        pods.subscribe(self._changed)

    def looks(self, key: Key, vmi: Json | None) -> None:
        """Record what a look at a VMI shows."""
        granted = set() if vmi is None else set(vmi.get("status", {}).get("activePods") or {})
        self._heard -= self._granted.get(key, set()) - granted  # unseen objects need not be remembered
        self._granted[key] = granted

    def forgotten(self, asked: Asked) -> str | None:
        """Return an end that was seen and is not reported."""
        new_status = asked.call.asked.get("patch", {}).get("status") or {}
        if asked.call.kind != VIRTUAL_MACHINE_INSTANCE.kind or new_status.get("phase") != "Unknown":
            return None
        granted = set(asked.decided_on.get("status", {}).get("activePods") or {})
        return "it is not known how it is, and its kubelet has said how it ended" if granted & self._heard else None

    def _changed(self, _key: Key, before: bytes | None, after: bytes | None) -> None:
        if before is None or after is not None:
            return
        pod: Json = msgspec.json.decode(before)
        states = (item.get("state", {}) for item in pod.get("status", {}).get("containerStatuses", ()))
        is_looked_at = any(pod["metadata"]["uid"] in item for item in self._granted.values())
        if is_looked_at and any("terminated" in item for item in states):
            self._heard.add(pod["metadata"]["uid"])

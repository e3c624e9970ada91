# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler remembers of a VMI between two reconciles, and can lose. Values only.

By key, for the VMI that has the name now: a new VMI of the same name starts with nothing, even if the deletion of the
former one was missed. So there are never more entries than VMIs and launchers on the node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_handler.vmi.world import Look


@dataclass(slots=True)
class VmiState:
    """What was learned about one VMI."""

    uid: str
    deleting_since: float | None = None
    """Monotonic seconds when its deletion was first seen."""
    sought: str = ""
    """UID of the Pod that was looked for."""
    look: Look | None = None
    """What was found."""
    strange_phase: str = ""
    """The unknown phase that was logged."""
    told: set[str] = field(default_factory=set)
    """Reasons of Events about its end."""

    def is_news(self, reason: str) -> bool:
        """Tell whether an Event of that reason was not told yet; from now on it was."""
        if reason in self.told:
            return False
        self.told.add(reason)
        return True


class ControllerState:
    """Of the VMIs of this node, and of names that launchers of this node have and no VMI."""

    def __init__(self) -> None:
        self._by_vmi: dict[Key, VmiState] = {}
        self._orphaned_since: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._by_vmi.keys() | self._orphaned_since.keys())

    def of(self, vmi: VirtualMachineInstance) -> VmiState:
        """Return what is known of exactly this VMI, not of a former one of its name."""
        key = Key(vmi.metadata.namespace, vmi.metadata.name)
        self._orphaned_since.pop(key, None)
        memory = self._by_vmi.get(key)
        if memory is None or memory.uid != vmi.metadata.uid:
            memory = self._by_vmi[key] = VmiState(vmi.metadata.uid)
        return memory

    def orphaned_since(self, key: Key, monotonic: float) -> float:
        """Return since when launchers of this name have had no VMI here. It may only be unseen: nothing is lost."""
        return self._orphaned_since.setdefault(key, monotonic)

    def forget(self, key: Key) -> None:
        """Drop a name that no VMI and no launcher of this node has."""
        self._by_vmi.pop(key, None)
        self._orphaned_since.pop(key, None)

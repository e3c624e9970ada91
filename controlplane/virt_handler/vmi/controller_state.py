# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler remembers of a VMI between reconciles. It can lose this state at any time. Values only.

The state is stored by key and belongs to one UID: a new VMI of the same name starts with an empty state, even if this
process missed the deletion of the former VMI. So there are never more entries than VMIs and launchers on the node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_handler.vmi.world import Look


@dataclass(slots=True)
class VmiState:
    """The state of one VMI."""

    uid: str
    deleting_since: float | None = None
    """Monotonic seconds when its deletion was first observed."""
    sought: str = ""
    """UID of the Pod that was searched for."""
    look: Look | None = None
    """The result of the search."""
    strange_phase: str = ""
    """The unknown phase that was logged."""
    recorded: set[str] = field(default_factory=set)
    """Reasons of the recorded Events about its end."""

    def is_news(self, reason: str) -> bool:
        """Tell whether no Event of that reason was recorded yet, and mark it as recorded."""
        if reason in self.recorded:
            return False
        self.recorded.add(reason)
        return True


class ControllerState:
    """The state of this node's VMIs, and of names that have launchers here but no VMI."""

    def __init__(self) -> None:
        self._by_vmi: dict[Key, VmiState] = {}
        self._orphaned_since: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._by_vmi.keys() | self._orphaned_since.keys())

    def of(self, vmi: VirtualMachineInstance) -> VmiState:
        """Return the state of this VMI, never that of a former VMI of the same name."""
        key = Key(vmi.metadata.namespace, vmi.metadata.name)
        self._orphaned_since.pop(key, None)  # several short absences do not make an orphan
        state = self._by_vmi.get(key)
        if state is None or state.uid != vmi.metadata.uid:
            state = self._by_vmi[key] = VmiState(vmi.metadata.uid)
        return state

    def orphaned_since(self, key: Key, monotonic: float) -> float:
        """Return when (monotonic) launchers of this name first had no VMI here. The VMI may exist: this is no proof."""
        return self._orphaned_since.setdefault(key, monotonic)

    def forget(self, key: Key) -> None:
        """Forget a name that neither a VMI nor a launcher of this node has."""
        self._by_vmi.pop(key, None)
        self._orphaned_since.pop(key, None)

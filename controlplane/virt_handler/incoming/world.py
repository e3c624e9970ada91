# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node knows of an instance that may come to it when it decides, and what it can do. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import State
from controlplane.virt_handler.vmi.world import Destroy, Dial, Launcher, PrepareNetwork


@dataclass(frozen=True, slots=True)
class TunnelAddress:
    """Where the source's virt-handler is waited for."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    node: str
    vmi: VirtualMachineInstance | None
    """Its migration names this node as target. None: it does not any more, and doors may be open yet."""
    launcher: Launcher | None
    """The Pod that it is to come to."""
    door: TunnelAddress | None
    """None: none is open for this migration."""
    open_tunnels: frozenset[str] = frozenset()
    """UIDs of migrations of this instance for which one is open."""
    now: float
    """Seconds since the epoch."""
    monotonic: float

    @property
    def moving(self) -> MigrationState:
        moving = None if self.vmi is None else self.vmi.status.migration_state
        return moving or MigrationState()

    @property
    def is_expected(self) -> bool:
        """Tell whether the instance is on its way: it is another node's yet, and nothing has ended its migration."""
        is_there = self.vmi is not None and self.vmi.status.node_name == self.node
        return self.moving.is_under_way and self.moving.target_node == self.node and not is_there

    @property
    def state(self) -> State | None:
        """What its domain does here; None: there is none, or nobody knows."""
        seen = None if self.launcher is None else self.launcher.status
        return seen.state if seen is not None and seen.is_connected else None


@dataclass(frozen=True, slots=True)
class OpenTunnel:
    """Wait for the source's virt-handler, for this migration alone."""

    migration_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class CloseTunnel:
    """Wait no more."""

    migration_uid: str
    because: str


Action = PrepareNetwork | Dial | Destroy | OpenTunnel | CloseTunnel

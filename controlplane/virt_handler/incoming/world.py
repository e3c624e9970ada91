# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed world of a VMI that migrates to this node, and the actions. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import State
from controlplane.virt_handler.vmi.world import Destroy, Dial, Launcher, PrepareNetwork


@dataclass(frozen=True, slots=True)
class TunnelAddress:
    """Where this node listens for the source's virt-handler."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    node: str
    vmi: VirtualMachineInstance | None
    """The VMI, whose migration names this node as target. None: it does not any more, but tunnels may be open."""
    launcher: Launcher | None = None
    """The target Pod of the migration."""
    tunnel: TunnelAddress | None = None
    """The address of the open tunnel; None: no tunnel is open for this migration."""
    open_tunnels: frozenset[str] = frozenset()
    """UIDs of this VMI's migrations with an open tunnel."""
    now: float
    """Seconds since the epoch."""
    monotonic: float

    @property
    def moving(self) -> MigrationState:
        migration = None if self.vmi is None else self.vmi.status.migration_state
        return migration or MigrationState()

    @property
    def is_expected(self) -> bool:
        """Tell whether the VMI migrates to this node: another node still owns it, and the migration has not ended."""
        is_committed = self.vmi is not None and self.vmi.status.node_name == self.node
        return self.moving.is_under_way and self.moving.target_node == self.node and not is_committed

    @property
    def state(self) -> State | None:
        """The state of the domain on this node; None: there is none, or it is unknown."""
        status = None if self.launcher is None else self.launcher.status
        return status.state if status is not None and status.is_connected else None


@dataclass(frozen=True, slots=True)
class OpenTunnel:
    """Listen for the source's virt-handler, for this migration only."""

    migration_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class CloseTunnel:
    """Stop listening."""

    migration_uid: str
    because: str


Action = PrepareNetwork | Dial | Destroy | OpenTunnel | CloseTunnel

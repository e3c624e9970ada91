# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface to tunnels. controlplane.virt_handler.migration implements it."""

from __future__ import annotations

from typing import Protocol

from controlplane.api.objects.migration_state import MigrationState
from controlplane.engine.errors import Invalid
from controlplane.virt_handler.incoming.world import TunnelAddress


class NoMigrationAddress(Invalid):
    """This node has no address to listen on for migrations. A retry does not help."""


class Tunnels(Protocol):
    """The tunnel servers of this node, each for one migration. Opening or losing one enqueues the VMI."""

    def address(self, migration_uid: str) -> TunnelAddress | None: ...

    def open_for(self, vmi_uid: str) -> frozenset[str]:
        """Return the UIDs of the VMI's migrations with an open tunnel."""

    async def open(self, vmi_uid: str, migration: MigrationState) -> None:
        """Listen for the source that the migration names. ApiError when its certificate cannot be read,
        NoMigrationAddress when this node has no address for migrations."""

    async def close(self, migration_uid: str) -> None: ...

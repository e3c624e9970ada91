# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of a migration. That libvirt obeys them: tests/controlplane/virt_launcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libvirt
import pytest

from controlplane.hypervisor.migration import Options, migrate
from tests.controlplane.virt_handler.builders import domain_text


class Guest:
    async def described(self, read: Callable[[str], str], *, migratable: bool) -> str:
        assert migratable
        return read(domain_text())


class Target:
    """Records the flags."""

    flags = 0

    async def receive(self, _guest: Any, _parameters: dict[str, object], flags: int, *, deadline_seconds: float) -> Any:
        assert deadline_seconds > 0
        self.flags = flags


@pytest.mark.parametrize("is_still", [False, True])
async def test_the_guest_stays_paused_at_the_target_and_runs_at_the_source_unless_paused(is_still: bool) -> None:
    target: Any = Target()
    guest: Any = Guest()
    sockets = {"memory_socket": "memory.sock", "disks_socket": "disks.sock"}
    await migrate(guest, target, Options(pod_uid="pod", epoch=2, **sockets, is_still=is_still))
    assert target.flags & libvirt.VIR_MIGRATE_PAUSED
    assert bool(target.flags & libvirt.VIR_MIGRATE_LIVE) is not is_still

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags and the bandwidth of a migration. That libvirt obeys them: tests/controlplane/virt_launcher."""

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
    """Records flags and parameters."""

    def __init__(self) -> None:
        self.flags = 0
        self.parameters: dict[str, object] = {}

    async def receive(self, _guest: Any, parameters: dict[str, object], flags: int, *, deadline_seconds: float) -> Any:
        assert deadline_seconds > 0
        self.flags, self.parameters = flags, parameters


@pytest.mark.parametrize("is_still", [False, True])
async def test_the_guest_stays_paused_at_the_target_and_runs_at_the_source_unless_paused(is_still: bool) -> None:
    target: Any = Target()
    guest: Any = Guest()
    sockets = {"memory_socket": "memory.sock", "disks_socket": "disks.sock"}
    await migrate(guest, target, Options(pod_uid="pod", epoch=2, **sockets, is_still=is_still))
    assert target.flags & libvirt.VIR_MIGRATE_PAUSED
    assert bool(target.flags & libvirt.VIR_MIGRATE_LIVE) is not is_still


@pytest.mark.parametrize(
    ("rate", "mebibytes"), [(1, 1), (2**20, 1), (3 * 2**20 - 1, 2), (2**63, 2**43 - 1), (10**99, 2**43 - 1)], ids=str
)
async def test_a_bandwidth_is_counted_in_whole_mebibytes_that_libvirt_takes(rate: int, mebibytes: int) -> None:
    target: Any = Target()
    guest: Any = Guest()
    options = Options(pod_uid="pod", epoch=2, memory_socket="a", disks_socket="b", bytes_per_second=rate)

    await migrate(guest, target, options)

    assert target.parameters[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] == mebibytes

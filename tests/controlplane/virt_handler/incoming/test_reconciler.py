# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reconciler of incoming migrations: what it observes of a VMI that is gone, and what it begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Unavailable
from controlplane.virt_handler.incoming.reconciler import IncomingReconciler
from controlplane.virt_handler.incoming.world import CloseTunnel
from tests.controlplane.virt_handler.builders import OTHER, VMI_UID
from tests.controlplane.virt_handler.fakes import FakeApi, FakeCache, FakeClock
from tests.controlplane.virt_handler.migrating import MIGRATION, migrating_object

KEY = Key("default", "web")


class Tunnels:
    """The tunnels of one VMI."""

    def __init__(self) -> None:
        self.uids = {MIGRATION}

    def address(self, _unused: str) -> None:
        return None

    def open_for(self, vmi_uid: str) -> frozenset[str]:
        return frozenset(self.uids) if vmi_uid == VMI_UID else frozenset()

    async def open(self, vmi_uid: str, moving: MigrationState) -> None:
        raise NotImplementedError

    async def close(self, migration_uid: str) -> None:
        self.uids.remove(migration_uid)


async def test_the_tunnels_of_a_vmi_that_is_gone_are_closed() -> None:
    vmis, tunnels, launchers = FakeCache(), Tunnels(), SimpleNamespace(launchers_of=lambda _uid: ())
    parts: Any = (vmis, launchers, tunnels)
    reconciler = IncomingReconciler(OTHER, *parts, api=FakeApi(vmis), clock=FakeClock())  # type: ignore[arg-type]
    vmis.synced = False
    with pytest.raises(Unavailable):
        reconciler.observe(KEY)
    vmis.synced = True
    vmis.put(migrating_object())
    world = reconciler.observe(KEY)
    assert world is not None
    assert (world.is_expected, world.open_tunnels) == (True, {MIGRATION})
    vmis.remove(KEY)
    world = reconciler.observe(KEY)
    assert world is not None
    (step,) = reconciler.decide(world).steps
    assert isinstance(step, CloseTunnel)
    await reconciler.apply(world, step)
    assert (tunnels.uids, reconciler.observe(KEY)) == (set(), None)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The KubeVirt controller against a store."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.resources import KUBEVIRT, Key
from controlplane.engine.errors import Conflict
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.kubevirt.reconciler import KubeVirtReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld

NAME = Key("kubevirt", "kubevirt")
STATUS = "patch status of KubeVirt"


def a_world() -> tuple[SmallWorld, KubeVirtReconciler]:
    world = SmallWorld((KUBEVIRT,))
    world.store.create(KUBEVIRT, "kubevirt", {"metadata": {"name": "kubevirt"}, "spec": {}})
    world.start()
    reconciler = KubeVirtReconciler(
        kubevirts=world.overlays[KUBEVIRT], api=world.api, clock=world.clock, version="1.2.3"
    )
    return world, reconciler


def status(world: SmallWorld) -> Any:
    return world.store.get(KUBEVIRT, NAME).get("status", {})


async def test_its_status_is_written_once_for_the_observed_generation() -> None:
    world, reconciler = a_world()
    for _unused in range(2):
        assert (await reconcile(reconciler, NAME)).error is None
        world.catch_up()
    assert world.calls == [f"{STATUS} [uid+version]"]
    assert (status(world)["phase"], status(world)["operatorVersion"]) == ("Deployed", "1.2.3")


async def test_an_outdated_object_gets_no_status() -> None:
    """Readers would take its observedGeneration for that of the current configuration."""
    world, reconciler = a_world()
    changed = {"spec": {"configuration": {"developerConfiguration": {"useEmulation": True}}}}
    world.direct.meanwhile[STATUS] = lambda: world.store.patch(KUBEVIRT, NAME, changed)
    assert isinstance((await reconcile(reconciler, NAME)).error, Conflict)
    assert status(world) == {}
    world.catch_up()
    assert (await reconcile(reconciler, NAME)).error is None
    assert status(world)["phase"] == "Deployed"


async def test_without_the_object_nothing_is_done() -> None:
    world, reconciler = a_world()
    assert (await reconcile(reconciler, Key("kubevirt", "another"))).error is None
    assert world.calls == []

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real reconcilers survive; deliberately broken ones are caught. Each oracle has a mutant that only it can find."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.plan import Plan, Tell
from controlplane.virt_controller.vm import world as vm_world
from controlplane.virt_controller.vm.reconciler import VmReconciler
from controlplane.virt_controller.vmi import world as vmi_world
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from tests.controlplane.simulation.controller import vm_reconciler, vmi_reconciler
from tests.controlplane.simulation.world import Failure, Simulation

SEEDS = range(1, 7)
MUTANT_SEEDS = (21, 16, *range(1, 41))


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Refusals are the point here; thousands of log records about them are not."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_breaks_and_nothing_stays_stuck(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run(10_000)
    assert simulation.store.version > 500, "a run that writes little proves little"
    assert simulation.faults > 50


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [Simulation(5) for _unused in range(2)]
    for one in runs:
        one.run(2_000)
    first, second = ([(entry.key, entry.raw) for entry in one.store.history] for one in runs)
    assert first == second


class RandomPodNames(VmiReconciler):
    """Names Pods like generateName does: creating twice duplicates instead of colliding."""

    _made = 0

    async def _create(self, world: vmi_world.World, action: vmi_world.CreatePod) -> None:
        body = build_launcher_pod(world.vmi, attempt=1, image="launcher", configuration=world.configuration)
        RandomPodNames._made += 1
        body["metadata"]["name"] += f"x{RandomPodNames._made}-1"
        await self._api.create(POD, world.vmi.metadata.namespace, body)


class NoAttemptWritten(VmiReconciler):
    """Creates the Pod first and records the attempt afterwards."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        plan = super().decide(world)
        is_waiting = all(isinstance(one, Tell) for one in plan.steps)
        if is_waiting and not world.vmi.status.phase and world.source is None and not world.problems:
            return Plan((vmi_world.CreatePod(1, because="in a hurry"),))
        return plan


class LetsGoTooEarly(VmiReconciler):
    """Frees the VMI's name when it is deleted, not when its Pod is gone."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        if world.is_deleting and world.vmi.metadata.finalizers:
            return Plan((vmi_world.RemoveFinalizers(because="in a hurry"),))
        return super().decide(world)


class KillsPodsOfLiveRuns(VmiReconciler):
    """Deletes a Pod that it takes for superfluous."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        plan = super().decide(world)
        if not plan.steps and world.pods and world.vmi.status.phase == "Running":
            meta = world.pods[0].metadata
            return Plan((vmi_world.DeletePod(meta.name, meta.uid, because="lost contact"),))
        return plan


class NeverLetsGo(VmiReconciler):
    """Forgets the finalizer."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        plan = super().decide(world)
        return Plan(tuple(one for one in plan.steps if not isinstance(one, vmi_world.RemoveFinalizers)))


class StopsOrphans(VmReconciler):
    """Deletes by name and UID, but whatever the object has become meanwhile."""

    async def _delete(self, world: vm_world.World, action: vm_world.DeleteVmi) -> None:
        vmi = world.vmi
        assert vmi is not None
        key = Key(vmi.metadata.namespace, vmi.metadata.name)
        await self._api.delete(VIRTUAL_MACHINE_INSTANCE, key, uid=vmi.metadata.uid)


class SleepsThroughTheBackOff(VmReconciler):
    """Does not come back when a crash-loop's delay is over."""

    def decide(self, world: vm_world.World) -> Plan[vm_world.Action]:
        return Plan(super().decide(world).steps)


MUTANTS: dict[str, tuple[type[VmReconciler], type[VmiReconciler], str]] = {
    "random Pod names": (VmReconciler, RandomPodNames, "nothing stuck"),
    "no attempt written before the create": (VmReconciler, NoAttemptWritten, "attempt"),
    "finalizer dropped before the Pod is gone": (VmReconciler, LetsGoTooEarly, "I1 never two"),
    "a live run's Pod deleted": (VmReconciler, KillsPodsOfLiveRuns, "I3 unasked stop"),
    "finalizer never dropped": (VmReconciler, NeverLetsGo, "nothing stuck"),
    "delete without resourceVersion": (StopsOrphans, VmiReconciler, "I3 unasked stop"),
    "no alarm for the back-off": (SleepsThroughTheBackOff, VmiReconciler, "nothing stuck"),
}


def _build(vms: type[VmReconciler], vmis: type[VmiReconciler]) -> Callable[..., tuple[VmReconciler, VmiReconciler]]:
    def build(**parts: Any) -> tuple[VmReconciler, VmiReconciler]:
        return vm_reconciler(vms, **parts), vmi_reconciler(vmis, **parts)

    return build


@pytest.mark.parametrize(("vms", "vmis", "breach"), MUTANTS.values(), ids=MUTANTS.keys())
def test_a_broken_reconciler_is_caught(vms: type[VmReconciler], vmis: type[VmiReconciler], breach: str) -> None:
    """One of the first seeds finds it, and the message says which invariant broke and how to repeat it."""
    found = next(filter(None, (_failure(seed, _build(vms, vmis)) for seed in MUTANT_SEEDS)), "no seed found it")
    assert found.startswith(breach), found
    assert ", step " in found, "the message says how far to repeat it"


def _failure(seed: int, build: Callable[..., tuple[VmReconciler, VmiReconciler]]) -> str | None:
    try:
        Simulation(seed, build).run(3_000)
    except Failure as failure:
        return str(failure)
    return None

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One requested start is one run, even if the leader changes in between: the instance answers the request."""

from __future__ import annotations

import pytest

from controlplane.engine.errors import Unavailable
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from tests.controlplane.simulation.controller import vm_reconciler
from tests.controlplane.virt_controller.vm.test_reconciler import VM, VMI, WEB, VmStand
from tests.support.store import Json

START = {"action": "Start"}
RAN = [{"phase": "Running", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
CREATE = "create VirtualMachineInstance"


def asked(strategy: str, *requests: Json) -> VmStand:
    stand = VmStand(strategy)
    status = {"runStrategy": strategy, "stateChangeRequests": list(requests)}
    stand.store.patch(VM, WEB, {"status": status}, subresource="status")
    stand.catch_up()
    return stand


async def create_and_vanish(stand: VmStand) -> str:
    """Let the leader create the instance and stop before its next write; return the instance's UID."""
    stand.direct.refusals["patch status of VirtualMachine"] = Unavailable("gone")
    await stand.run()
    stand.direct.refusals.clear()
    return str(stand.vmi["metadata"]["uid"])


def end(stand: VmStand, phase: str) -> None:
    status = {"phase": phase, "phaseTransitionTimestamps": RAN}
    stand.store.patch(VMI, WEB, {"status": status}, subresource="status")


def next_leader(stand: VmStand) -> None:
    stand.overlays = {resource: ReadYourWritesCache(cache) for resource, cache in stand.caches.items()}
    stand.api = ReadYourWritesApi(stand.direct, stand.overlays)
    stand.reconciler = vm_reconciler(overlays=stand.overlays, api=stand.api, clock=stand.clock, events=stand.told)
    stand.calls.clear()


async def come_to_rest(stand: VmStand) -> None:
    """Run until nothing more is due; deleted instances are finalized, as the VMI controller does."""
    for _unused in range(8):
        stand.catch_up()
        await stand.run()
        vmi = stand.store.find(VMI, WEB)
        if vmi is not None and "deletionTimestamp" in vmi["metadata"]:
            stand.store.patch(VMI, WEB, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure"])
@pytest.mark.parametrize("requests", [[START], [{"action": "Stop", "uid": "older"}, START]], ids=["start", "restart"])
async def test_a_run_that_ended_before_its_start_left_the_queue_is_not_repeated(
    strategy: str, requests: list[Json]
) -> None:
    stand = asked(strategy, *requests)
    await create_and_vanish(stand)
    end(stand, "Succeeded")
    next_leader(stand)
    await come_to_rest(stand)
    assert CREATE not in stand.calls
    assert not stand.vm["status"].get("stateChangeRequests")


async def test_a_run_that_a_user_ended_before_its_start_left_the_queue_is_not_repeated() -> None:
    stand = asked("Manual", START)
    await create_and_vanish(stand)
    stand.store.delete(VMI, WEB)
    next_leader(stand)
    await come_to_rest(stand)
    assert CREATE not in stand.calls
    assert not stand.vm["status"].get("stateChangeRequests")


async def test_an_instance_is_not_deleted_before_its_start_left_the_queue() -> None:
    """Otherwise a leader that stops right after the delete leaves a start behind that no instance answers."""
    stand = asked("RerunOnFailure", START)
    first = await create_and_vanish(stand)
    end(stand, "Succeeded")
    next_leader(stand)
    stand.catch_up()
    await create_and_vanish(stand)
    assert stand.vmi["metadata"]["uid"] == first
    assert "deletionTimestamp" not in stand.vmi["metadata"]


async def test_a_failed_run_is_repeated_once() -> None:
    """The start is answered; under RerunOnFailure the failure requests one more."""
    stand = asked("RerunOnFailure", START)
    first = await create_and_vanish(stand)
    end(stand, "Failed")
    next_leader(stand)
    await come_to_rest(stand)
    assert stand.calls.count(CREATE) == 1
    assert stand.vmi["metadata"]["uid"] != first
    assert not stand.vm["status"].get("stateChangeRequests")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop during the creation of the instance stops it, although nobody has observed the instance yet."""

from __future__ import annotations

import pytest

from controlplane.api.objects.decode import decode_vm
from controlplane.engine.errors import Unavailable
from controlplane.virt_api.subresources.lifecycle import PatchStatus, decide_stop
from controlplane.virt_api.subresources.options import StopOptions
from tests.controlplane.virt_controller.vm.test_one_start import CREATE, asked, come_to_rest, next_leader
from tests.controlplane.virt_controller.vm.test_reconciler import VM, VMI, WEB, VmStand
from tests.support.store import Json

START = {"action": "Start"}
ASKED = [("Manual", [START]), ("Manual", [{"action": "Stop", "uid": "older"}, START]), ("RerunOnFailure", [START])]


def stop(stand: VmStand) -> None:
    """Request a stop as virt-api does when it finds no instance."""
    assert stand.store.find(VMI, WEB) is None
    for write in decide_stop(decode_vm(stand.vm), None, StopOptions()):
        assert isinstance(write, PatchStatus)
        stand.store.patch(VM, WEB, write.patch, subresource="status")


def is_stopped(stand: VmStand) -> bool:
    return stand.store.find(VMI, WEB) is None and not stand.vm["status"].get("stateChangeRequests")


@pytest.mark.parametrize(("strategy", "requests"), ASKED)
@pytest.mark.parametrize("is_answer_lost", [False, True], ids=["answered", "answer lost, and a new leader"])
async def test_a_stop_during_the_creation_of_an_instance_is_carried_out(
    strategy: str, requests: list[Json], is_answer_lost: bool
) -> None:
    stand = asked(strategy, *requests)
    stand.direct.meanwhile[CREATE] = lambda: stop(stand)
    if is_answer_lost:
        stand.direct.refusals["patch status of VirtualMachine"] = Unavailable("gone")
    await stand.run()
    stand.direct.refusals.clear()
    assert stand.store.find(VMI, WEB) is not None
    if is_answer_lost:
        next_leader(stand)
    await come_to_rest(stand)
    assert is_stopped(stand)


@pytest.mark.parametrize(("strategy", "requests"), ASKED)
async def test_a_stop_before_the_creation_is_removed_and_stops_no_later_run(
    strategy: str, requests: list[Json]
) -> None:
    stand = asked(strategy, *requests)
    stop(stand)
    stand.catch_up()
    await come_to_rest(stand)
    assert is_stopped(stand)
    assert CREATE not in stand.calls
    stand.store.patch(VM, WEB, {"status": {"stateChangeRequests": [START]}}, subresource="status")
    await come_to_rest(stand)
    assert "deletionTimestamp" not in stand.vmi["metadata"]

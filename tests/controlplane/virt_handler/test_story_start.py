# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts that do not succeed at once, or never: what is seen meanwhile, and what is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.api.objects.decode import decode_vmi
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import HypervisorError, InvalidDomain
from controlplane.virt_handler.node.virt_node_client import NodeClient
from tests.controlplane.virt_handler.builders import POD_UID, domain_text, pod_object, vmi_object
from tests.controlplane.virt_handler.fakes import (
    FakeConnection,
    until,
)
from tests.controlplane.virt_handler.stage import KEY, Node

pytestmark = pytest.mark.root  # sockets of uid 107


async def test_before_the_hand_over_a_vmi_is_read_once_and_by_its_uid(node: Node) -> None:
    node.api.store({**vmi_object("Scheduling"), "metadata": {**vmi_object()["metadata"], "uid": "another"}})
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    node.pods.put(pod_object(phase="Pending"))
    await until(lambda: bool(node.api.gets), "the VMI to be read")
    node.pods.put(pod_object())
    await asyncio.sleep(0.02)
    assert len(node.api.gets) == 1
    assert node.network.wanted == []
    assert node.libvirtd.dials == 0


async def test_only_the_pod_that_is_granted_the_run_is_dialled(up: Node) -> None:
    """Everything is prepared for it before, and not a byte of it read."""
    assert up.network.wanted
    await asyncio.sleep(0.02)
    assert up.libvirtd.dials == 0
    up.hand_over()
    await until(lambda: up.phase == "Running", "Running")
    assert up.libvirtd.dials == 1


async def test_a_start_without_virt_node_says_what_it_waits_for_and_goes_on_when_it_is_there(node: Node) -> None:
    assert node.virt_node is not None
    await node.virt_node.kill()
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    node.pods.put(pod_object())
    body = vmi_object("Scheduled")
    body["status"]["phaseTransitionTimestamps"] = [
        {"phase": "Scheduled", "phaseTransitionTimestamp": "2023-11-14T22:12:49Z"}
    ]
    node.api.store(body)
    await until(lambda: "conditions" in node.status, "a word")
    (said,) = node.status["conditions"]
    assert (said["type"], said["reason"]) == ("Synchronized", "VirtNodeNotReady")
    node.virt_node.is_up = True
    await until(lambda: node.phase == "Running", "Running", clock=node.clock)
    assert "Synchronized" not in {one["type"] for one in node.status["conditions"]}


async def test_an_impossible_domain_fails_with_the_reason(up: Node) -> None:
    up.libvirtd.define_error = InvalidDomain("cannot define: unsupported CPU model")
    up.hand_over()
    await until(lambda: up.phase == "Failed", "Failed")
    assert up.status["reason"] == "InvalidDomain"
    assert "unsupported CPU model" in up.status["conditions"][-1]["message"]


@pytest.mark.parametrize(
    "seen", [State(Life.RUNNING, "booted"), State(Life.PAUSED, "starting_up")], ids=["running", "starting up"]
)
async def test_a_qemu_that_only_flashes_up_never_makes_the_vmi_running(up: Node, seen: State) -> None:
    up.libvirtd.start_error = InvalidDomain("cannot start: could not open kernel file '/img/kernel-boot/nope'")
    up.libvirtd.while_starting = seen
    up.hand_over()
    await until(lambda: up.phase != "Scheduled", "a verdict")
    assert up.phase == "Failed"
    assert up.status["reason"] == "InvalidDomain"
    assert "could not open kernel file" in up.status["conditions"][-1]["message"]
    assert [one.reason for one in up.told] == ["Stopped"]
    assert "could not open kernel file" in up.told[0].message


async def test_a_handler_that_comes_back_in_the_middle_of_a_start_waits_for_its_end(up: Node) -> None:
    """libvirtd goes on with a start whose client died; what it shows meanwhile is not a guest yet."""
    guest = await FakeConnection(up.libvirtd).define(domain_text())
    guest.life = State(Life.PAUSED, "starting_up")
    await up.end()
    up.hand_over()
    up.begin()
    await until(lambda: up.registry is not None and up.registry.connected == 1, "contact")
    await asyncio.sleep(0.02)
    assert up.phase == "Scheduled"
    guest.become(State(Life.RUNNING, "booted"), "started")
    await until(lambda: up.phase == "Running", "Running")


async def test_a_start_that_fails_for_long_is_given_up_with_the_reason(up: Node) -> None:
    up.libvirtd.start_error = HypervisorError("cannot start: no space left on device")
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 3, "some attempts", clock=up.clock)
    assert up.phase == "Scheduled"
    assert "no space left" in up.status["conditions"][-1]["message"]
    up.clock.seconds += 2
    await until(lambda: up.phase == "Failed", "Failed", clock=up.clock)
    assert up.status["reason"] == "StartFailed"


async def test_a_start_that_fails_for_a_moment_succeeds_after_all(up: Node) -> None:
    up.libvirtd.start_error = HypervisorError("cannot start: no memory")
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 1, "some attempts", clock=up.clock)
    up.libvirtd.start_error = None
    await until(lambda: up.phase == "Running", "Running", clock=up.clock)


async def test_a_qemu_that_flashes_up_before_a_start_that_succeeds_is_no_run(up: Node) -> None:
    """The look that its event asks for comes in the middle of the start. What it saw would be the run, and its end."""
    up.libvirtd.start_error = HypervisorError("cannot start: no memory")
    up.libvirtd.while_starting = State(Life.RUNNING, "booted")
    up.hand_over()
    await until(lambda: bool(up.libvirtd.defined), "the first attempt")
    up.libvirtd.start_error = None  # what is under way fails yet
    await until(lambda: up.phase != "Scheduled", "a verdict", clock=up.clock)
    assert (up.phase, len(up.libvirtd.defined)) == ("Running", 2)
    assert [one.reason for one in up.told] == ["Started"]


async def test_a_start_that_is_answered_and_not_done_is_tried_ever_less_often(up: Node) -> None:
    """It was done 67 times a second, with a read of the API server each."""
    up.libvirtd.is_off_again = True
    up.hand_over()
    began = up.clock.seconds
    await until(lambda: up.clock.seconds > began + 0.3, "a while", clock=up.clock)
    assert len(up.libvirtd.defined) == 3  # after 0, 50 and 150 ms
    assert up.phase == "Scheduled"


async def test_a_start_that_is_answered_and_never_done_is_given_up_with_the_reason(up: Node) -> None:
    up.libvirtd.is_off_again = True
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 3, "some attempts", clock=up.clock)
    up.clock.seconds += 2
    await until(lambda: up.phase == "Failed", "Failed", clock=up.clock)
    assert up.status["reason"] == "StartFailed"
    assert "the domain is off" in up.status["conditions"][-1]["message"]


async def test_a_lying_report_fails_the_vmi_and_names_it(up: Node) -> None:
    up.files.report("/img/volumes/root/../../etc/shadow")
    up.hand_over()
    await until(lambda: up.phase == "Failed", "Failed")
    assert "outside the image of volume root" in up.status["conditions"][-1]["message"]
    assert up.libvirtd.defined == []


@pytest.mark.parametrize("newer", [{"deleting": True}, {"phase": "Failed"}], ids=["deleted", "over"])
async def test_a_start_that_waited_for_its_node_rests_on_no_old_grant(
    up: Node, newer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """virt-node is slow with the launcher's report, and the grant is taken back meanwhile."""
    asked, may_answer = asyncio.Event(), asyncio.Event()
    read_report = NodeClient.read_report

    async def slow(client: NodeClient, pod_uid: str) -> bytes:
        asked.set()
        await may_answer.wait()
        return await read_report(client, pod_uid)

    monkeypatch.setattr(NodeClient, "read_report", slow)
    up.hand_over()
    await asked.wait()
    up.api.store(vmi_object(newer.get("phase", "Scheduled"), deleting=newer.get("deleting", False)))
    may_answer.set()
    await asyncio.sleep(0.05)
    assert up.libvirtd.defined == []


async def test_a_guest_that_is_to_start_paused_is_running_and_paused_until_somebody_unpauses_it(up: Node) -> None:
    up.hand_over(startStrategy="Paused")
    await until(lambda: up.phase == "Running", "Running")
    (said,) = [one for one in up.status["conditions"] if one["type"] == "Paused"]
    assert (said["status"], said["reason"]) == ("True", "PausedByUser")
    assert up.registry is not None
    session = up.registry.session(POD_UID)
    assert session is not None
    assert up.libvirtd.asked == []

    await session.execute_user_request("unpause", None)

    await until(lambda: "Paused" not in {one["type"] for one in up.status["conditions"]}, "the end of the pause")
    assert up.libvirtd.asked == ["resume"]


async def test_a_guest_that_an_error_and_a_person_have_paused_waits_for_the_person(running: Node) -> None:
    """Also when virt-handler was started again meanwhile, which knows it by the condition."""

    def paused() -> str:
        return next((one["reason"] for one in running.status["conditions"] if one["type"] == "Paused"), "")

    guest = running.libvirtd.guest
    assert guest is not None
    assert running.registry is not None
    session = running.registry.session(POD_UID)
    assert session is not None
    guest.life = State(Life.PAUSED, "ioerror")
    await session.execute_user_request("pause", None)
    await until(lambda: paused() == "PausedByUser", "the person's pause")

    await running.end()
    running.clock.seconds += 3600
    running.begin()
    await until(lambda: running.registry is not None and running.registry.connected == 1, "contact")
    await asyncio.sleep(0.05)

    assert "resume" not in running.libvirtd.asked
    assert paused() == "PausedByUser"
    session = running.registry.session(POD_UID)
    assert session is not None
    await session.execute_user_request("unpause", decode_vmi(running.api.objects[KEY]))
    await until(lambda: "resume" in running.libvirtd.asked, "what every such guest gets")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts that fail, at first or for good: what the VMI shows meanwhile and in the end."""

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


async def test_only_the_granted_pod_is_dialled(up: Node) -> None:
    """Its network and directory are prepared earlier, but nothing is read from it."""
    assert up.network.wanted
    await asyncio.sleep(0.02)
    assert up.libvirtd.dials == 0
    up.hand_over()
    await until(lambda: up.phase == "Running", "Running")
    assert up.libvirtd.dials == 1


async def test_a_start_without_virt_node_reports_that_and_continues_when_it_is_back(node: Node) -> None:
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
    (reported,) = node.status["conditions"]
    assert (reported["type"], reported["reason"]) == ("Synchronized", "VirtNodeNotReady")
    node.virt_node.is_up = True
    await until(lambda: node.phase == "Running", "Running", clock=node.clock)
    assert "Synchronized" not in {condition["type"] for condition in node.status["conditions"]}


async def test_an_invalid_domain_fails_the_vmi_with_the_reason(up: Node) -> None:
    up.libvirtd.define_error = InvalidDomain("cannot define: unsupported CPU model")
    up.hand_over()
    await until(lambda: up.phase == "Failed", "Failed")
    assert up.status["reason"] == "InvalidDomain"
    assert "unsupported CPU model" in up.status["conditions"][-1]["message"]


@pytest.mark.parametrize(
    "seen", [State(Life.RUNNING, "booted"), State(Life.PAUSED, "starting_up")], ids=["running", "starting up"]
)
async def test_a_short_lived_qemu_never_makes_the_vmi_running(up: Node, seen: State) -> None:
    up.libvirtd.start_error = InvalidDomain("cannot start: could not open kernel file '/img/kernel-boot/nope'")
    up.libvirtd.while_starting = seen
    up.hand_over()
    await until(lambda: up.phase != "Scheduled", "a verdict")
    assert up.phase == "Failed"
    assert up.status["reason"] == "InvalidDomain"
    assert "could not open kernel file" in up.status["conditions"][-1]["message"]
    assert [event.reason for event in up.told] == ["Stopped"]
    assert "could not open kernel file" in up.told[0].message


async def test_a_handler_restarted_during_a_start_waits_for_its_end(up: Node) -> None:
    """libvirtd continues a start whose client died. The domain state meanwhile is not a running guest."""
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


async def test_a_start_that_keeps_failing_fails_the_vmi_with_the_reason(up: Node) -> None:
    up.libvirtd.start_error = HypervisorError("cannot start: no space left on device")
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 3, "some attempts", clock=up.clock)
    assert up.phase == "Scheduled"
    assert "no space left" in up.status["conditions"][-1]["message"]
    up.clock.seconds += 2
    await until(lambda: up.phase == "Failed", "Failed", clock=up.clock)
    assert up.status["reason"] == "StartFailed"


async def test_a_start_is_retried_after_a_temporary_error(up: Node) -> None:
    up.libvirtd.start_error = HypervisorError("cannot start: no memory")
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 1, "some attempts", clock=up.clock)
    up.libvirtd.start_error = None
    await until(lambda: up.phase == "Running", "Running", clock=up.clock)


async def test_a_short_lived_qemu_of_a_failed_start_is_no_run(up: Node) -> None:
    """Its event triggers a read in the middle of the start. That read would see a run, and then its end."""
    up.libvirtd.start_error = HypervisorError("cannot start: no memory")
    up.libvirtd.while_starting = State(Life.RUNNING, "booted")
    up.hand_over()
    await until(lambda: bool(up.libvirtd.defined), "the first attempt")
    up.libvirtd.start_error = None  # the start in progress still fails
    await until(lambda: up.phase != "Scheduled", "a verdict", clock=up.clock)
    assert (up.phase, len(up.libvirtd.defined)) == ("Running", 2)
    assert [event.reason for event in up.told] == ["Started"]


async def test_a_start_without_effect_is_retried_with_back_off(up: Node) -> None:
    """It was retried 67 times a second, each time with a read from the API server."""
    up.libvirtd.is_off_again = True
    up.hand_over()
    began = up.clock.seconds
    await until(lambda: up.clock.seconds > began + 0.3, "a while", clock=up.clock)
    assert len(up.libvirtd.defined) == 3  # after 0, 50 and 150 ms
    assert up.phase == "Scheduled"


async def test_a_start_that_never_has_an_effect_fails_the_vmi_with_the_reason(up: Node) -> None:
    up.libvirtd.is_off_again = True
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 3, "some attempts", clock=up.clock)
    up.clock.seconds += 2
    await until(lambda: up.phase == "Failed", "Failed", clock=up.clock)
    assert up.status["reason"] == "StartFailed"
    assert "the domain is off" in up.status["conditions"][-1]["message"]


async def test_an_invalid_report_fails_the_vmi_with_the_path(up: Node) -> None:
    up.files.report("/img/volumes/root/../../etc/shadow")
    up.hand_over()
    await until(lambda: up.phase == "Failed", "Failed")
    assert "outside the image of volume root" in up.status["conditions"][-1]["message"]
    assert up.libvirtd.defined == []


@pytest.mark.parametrize("newer", [{"deleting": True}, {"phase": "Failed"}], ids=["deleted", "over"])
async def test_a_start_delayed_by_virt_node_checks_the_grant_again(
    up: Node, newer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """virt-node reads the report slowly, and the grant is withdrawn meanwhile."""
    is_reading, may_answer = asyncio.Event(), asyncio.Event()
    read_report = NodeClient.read_report

    async def slow(client: NodeClient, pod_uid: str) -> bytes:
        is_reading.set()
        await may_answer.wait()
        return await read_report(client, pod_uid)

    monkeypatch.setattr(NodeClient, "read_report", slow)
    up.hand_over()
    await is_reading.wait()
    up.api.store(vmi_object(newer.get("phase", "Scheduled"), deleting=newer.get("deleting", False)))
    may_answer.set()
    await asyncio.sleep(0.05)
    assert up.libvirtd.defined == []


async def test_a_guest_that_starts_paused_is_running_and_paused_until_a_user_unpauses_it(up: Node) -> None:
    up.hand_over(startStrategy="Paused")
    await until(lambda: up.phase == "Running", "Running")
    (paused,) = [condition for condition in up.status["conditions"] if condition["type"] == "Paused"]
    assert (paused["status"], paused["reason"]) == ("True", "PausedByUser")
    assert up.registry is not None
    session = up.registry.session(POD_UID)
    assert session is not None
    assert up.libvirtd.asked == []

    await session.execute_user_request("unpause", None)

    await until(
        lambda: "Paused" not in {condition["type"] for condition in up.status["conditions"]}, "the end of the pause"
    )
    assert up.libvirtd.asked == ["resume"]


async def test_a_guest_paused_by_an_error_and_a_user_waits_for_the_user(running: Node) -> None:
    """A restarted virt-handler knows the user's pause from the condition."""

    def paused() -> str:
        return next(
            (condition["reason"] for condition in running.status["conditions"] if condition["type"] == "Paused"), ""
        )

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

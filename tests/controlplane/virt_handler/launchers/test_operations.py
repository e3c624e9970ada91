# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations of a session: what it asks of libvirt and of the node, and how it handles the answers."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from controlplane.hypervisor.errors import TimedOut
from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_handler.launchers.ports import LauncherSocket, NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.vmi.ports import NO_INPUTS, NoContact, OperationInputs, StartRefused
from controlplane.virt_handler.vmi.world import Destroy, PlugCpus, PlugMemory, PrepareNetwork, ShutDown
from tests.controlplane.virt_handler.builders import POD_UID, RUNNING, VMI_UID, a_pod, a_vmi, domain_text
from tests.controlplane.virt_handler.fakes import FakeClock, FakeConnection, FakeLibvirtd, until


class Node(NodeClient):
    """A node with one answer."""

    def __init__(self, answer: NodeError | None = None, *, is_tap_open: bool | None = None) -> None:
        super().__init__(self._nowhere)
        self._answer = answer
        self._is_tap_open = is_tap_open
        self.asked: list[tuple[str, Masquerade]] = []

    async def _nowhere(self) -> socket.socket:
        raise ConnectionRefusedError

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        return LauncherSocket(os.open(os.devnull, os.O_RDONLY))

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface:
        self.asked.append((pod_uid, wanted))
        if self._answer is not None:
            raise self._answer
        return PodInterface(("10.244.0.7",), 1450, self._is_tap_open)


def a_session(libvirtd: FakeLibvirtd, node: Node | None = None) -> Session:
    return Session(
        a_pod(), VMI_UID, Tools(node or Node(), FakeClock(), libvirtd.connect), lambda: None, spawn=asyncio.create_task
    )


async def test_a_guest_that_survives_two_destroys_is_killed() -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())
    for _unused in range(4):
        guest.life = RUNNING
        await session.operations.perform(Destroy(POD_UID, "test"), NO_INPUTS)
    assert libvirtd.asked == ["destroy", "destroy", "kill", "kill"]


async def test_the_time_of_a_shutdown_request_is_recorded() -> None:
    """The reconciler waits before it repeats the request."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    (await connection.define(domain_text())).life = RUNNING
    await session.operations.perform(ShutDown(POD_UID, "test"), NO_INPUTS)
    assert libvirtd.asked == ["shutdown"]
    assert session.launcher().status.shutdown_asked_at == session._tools.clock.monotonic()


async def test_a_network_is_set_up_once() -> None:
    session = a_session(FakeLibvirtd(VMI_UID))
    await session.operations.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi()))
    assert session.launcher().status.is_network_ready
    session._tools = Tools(Node(Refused("again")), FakeClock(), FakeLibvirtd(VMI_UID).connect)
    await session.operations.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi()))


async def test_the_network_is_repaired_while_the_launcher_is_connected() -> None:
    """No event tells that the rules were flushed."""
    node, clock, libvirtd = Node(), FakeClock(), FakeLibvirtd(VMI_UID)
    session = Session(
        a_pod(),
        VMI_UID,
        Tools(node, clock, libvirtd.connect, resync_seconds=0.01),
        lambda: None,
        spawn=asyncio.create_task,
    )
    session.admit()
    await session.operations.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi()))
    contact = asyncio.create_task(session.run())
    await until(lambda: len(node.asked) >= 3, "its network", clock=clock)
    assert len(set(node.asked)) == 1
    contact.cancel()


@pytest.mark.parametrize("is_up", [True, False])
async def test_only_a_running_guest_loses_its_network_with_its_tap(is_up: bool) -> None:
    """No QEMU holds the tap before the start or after the end."""
    node, clock, libvirtd = Node(is_tap_open=False), FakeClock(), FakeLibvirtd(VMI_UID)
    if is_up:
        (await FakeConnection(libvirtd).define(domain_text())).life = RUNNING
    session = Session(
        a_pod(),
        VMI_UID,
        Tools(node, clock, libvirtd.connect, resync_seconds=0.01),
        lambda: None,
        spawn=asyncio.create_task,
    )
    session.admit()
    await session.operations.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi()))
    contact = asyncio.create_task(session.run())
    await until(lambda: session.launcher().status.is_connected, "contact", clock=clock)
    setups = len(node.asked)
    await until(lambda: len(node.asked) >= setups + 2, "its network", clock=clock)
    assert bool(session.launcher().status.network_trouble) is is_up
    contact.cancel()


async def test_an_unsupported_network_does_not_end_a_running_guest() -> None:
    """A newer virt-handler may not support what an older one admitted. The guest is fine."""
    session = a_session(FakeLibvirtd(VMI_UID))
    odd = a_vmi("Running", networks=[])
    session.record.publish(has_run=True)
    with pytest.raises(StartRefused):
        await session.operations.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(odd))
    assert session.launcher().status.failure is None


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [(NodeAway("away"), NoContact), (NotThere("no namespace"), NoContact), (Refused("a link"), StartRefused)],
    ids=["virt-node is away", "the Pod has no network yet, or none any more", "it is not what it has to be"],
)
async def test_a_network_that_is_not_ready_yet_is_no_refusal(answer: NodeError, meaning: type[Exception]) -> None:
    """A refusal is shown in the status. A state that resolves itself is not worth that."""
    session = a_session(FakeLibvirtd(VMI_UID), Node(answer))
    with pytest.raises(meaning):
        await session.operations.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi()))
    assert not session.launcher().status.is_network_ready


async def test_plugged_cpus_are_read_back() -> None:
    """No event causes this read."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    (await connection.define(domain_text())).life = RUNNING
    await session.connection.refresh()
    await session.operations.perform(PlugCpus(POD_UID, 2, "test"), NO_INPUTS)
    domain = session.launcher().status.observed
    assert domain is not None
    assert (libvirtd.asked, domain.vcpus) == (["have 2 CPUs"], 2)


async def test_cpus_that_do_not_appear_are_an_error() -> None:
    """A launcher may run a tenant's program. A success would make virt-handler plug again at once, for ever."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    text = domain_text().replace("<features>", "<vcpu current='1'>8</vcpu><features>")
    (await connection.define(text)).life = RUNNING
    libvirtd.can_plug = False
    with pytest.raises(NoContact, match="the guest has 2 virtual CPUs, but it has 1"):
        await session.operations.perform(PlugCpus(POD_UID, 2, "test"), NO_INPUTS)


@pytest.mark.parametrize("can_plug", [True, False])
async def test_requested_memory_is_read_back(can_plug: bool) -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    (await connection.define(domain_text())).life = RUNNING
    await session.connection.refresh()
    libvirtd.can_plug = can_plug
    if not can_plug:
        with pytest.raises(NoContact, match="is asked to have other memory, but it is not"):
            await session.operations.perform(PlugMemory(POD_UID, 1 << 30, "test"), NO_INPUTS)
        return
    await session.operations.perform(PlugMemory(POD_UID, 1 << 30, "test"), NO_INPUTS)
    domain = session.launcher().status.observed
    assert domain is not None
    assert (libvirtd.asked, domain.requested_bytes) == ([f"have {1 << 30} bytes more"], 1 << 30)
    assert session.memory.is_begun, "it is looked whether the guest takes it"


async def test_memory_is_read_back_after_a_lost_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The requested memory decides how the guest is sent."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())
    guest.life = RUNNING
    await session.connection.refresh()
    change = guest.set_memory

    async def change_and_be_cut_off(requested_bytes: int) -> None:
        await change(requested_bytes)
        raise TimedOut("no answer")

    monkeypatch.setattr(guest, "set_memory", change_and_be_cut_off)
    with pytest.raises(NoContact):
        await session.operations.perform(PlugMemory(POD_UID, 1 << 30, "test"), NO_INPUTS)
    await session.connection.refresh()
    domain = session.launcher().status.observed
    assert domain is not None
    assert domain.requested_bytes == 1 << 30

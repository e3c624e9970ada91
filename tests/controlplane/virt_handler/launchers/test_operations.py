# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations of a session: what they request of libvirt and of the node, and what their answers mean."""

from __future__ import annotations

import pytest

from controlplane.hypervisor.errors import TimedOut
from controlplane.virt_handler.launchers.ports import NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.vmi.ports import NoContact, OperationInputs, StartRefused
from controlplane.virt_handler.vmi.world import Destroy, PlugCpus, PlugMemory, PrepareNetwork, Resume, ShutDown
from tests.controlplane.virt_handler.builders import POD_UID, RUNNING, a_vmi, domain_text
from tests.controlplane.virt_handler.fakes import FakeConnection, until
from tests.controlplane.virt_handler.launchers.session_stage import SessionStage

PREPARE, VMI = PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi())


@pytest.fixture
async def stage() -> SessionStage:
    return SessionStage()


async def test_a_guest_that_survives_two_destroys_is_killed(stage: SessionStage) -> None:
    guest = await stage.define()
    for _unused in range(4):
        guest.life = RUNNING
        await stage.perform(Destroy(POD_UID, "test"))
    assert stage.libvirtd.asked == ["destroy", "destroy", "kill", "kill"]
    assert (stage.status.destroys, stage.status.destroy_asked_at) == (4, stage.clock.seconds)


async def test_the_times_of_shutdowns_and_resumes_are_recorded(stage: SessionStage) -> None:
    """The reconciler waits before it repeats the request."""
    await stage.define()
    await stage.perform(Resume(POD_UID, "test"))
    await stage.perform(Resume(POD_UID, "test"))
    assert (stage.status.resumes, stage.status.resume_asked_at) == (2, stage.clock.seconds)
    await stage.perform(ShutDown(POD_UID, "test"))
    assert stage.libvirtd.asked == ["resume", "resume", "shutdown"]
    assert stage.status.shutdown_asked_at == stage.clock.seconds


async def test_a_network_is_set_up_once_and_then_repaired(stage: SessionStage) -> None:
    await stage.perform(PREPARE, VMI)
    assert stage.status.is_network_ready
    await stage.perform(PREPARE, VMI)
    assert stage.node.networks == [stage.session.network._wanted]


@pytest.mark.parametrize("is_up", [True, False])
async def test_the_network_is_repaired_while_the_launcher_is_connected(is_up: bool) -> None:
    """No event reports flushed rules. A missing tap is a trouble only of a running guest: QEMU holds it open."""
    stage = SessionStage(resync_seconds=0.01)
    stage.node.is_tap_open = False
    if is_up:
        (await FakeConnection(stage.libvirtd).define(domain_text())).life = RUNNING
    stage.session.admit()
    await stage.perform(PREPARE, VMI)
    async with stage.running():
        await until(lambda: stage.status.is_connected, "a connection", clock=stage.clock)
        setups = len(stage.node.networks)
        await until(lambda: len(stage.node.networks) >= setups + 2, "repairs", clock=stage.clock)
    assert len(set(stage.node.networks)) == 1
    assert bool(stage.status.network_trouble) is is_up


@pytest.mark.parametrize("has_run", [True, False])
async def test_an_unsupported_network_fails_only_a_guest_that_has_not_started(
    stage: SessionStage, has_run: bool
) -> None:
    """A newer virt-handler may not support what an older one admitted. The running guest is fine."""
    stage.session.record.publish(has_run=has_run)
    with pytest.raises(StartRefused):
        await stage.perform(PREPARE, OperationInputs(a_vmi("Running", networks=[])))
    assert (stage.status.failure is None) is has_run


@pytest.mark.parametrize(
    ("error", "meaning"),
    [(NodeAway("away"), NoContact), (NotThere("no namespace"), NoContact), (Refused("a link"), StartRefused)],
    ids=["virt-node is away", "the Pod has no network", "refused"],
)
async def test_only_a_refused_network_is_a_refused_start(
    stage: SessionStage, error: NodeError, meaning: type[Exception]
) -> None:
    """The status shows a refusal. A state that resolves itself is not worth that."""
    stage.node.error = error
    with pytest.raises(meaning):
        await stage.perform(PREPARE, VMI)
    assert not stage.status.is_network_ready


async def test_plugged_cpus_are_read_back(stage: SessionStage) -> None:
    await stage.define()
    await stage.look()
    await stage.perform(PlugCpus(POD_UID, 2, "test"))
    assert stage.status.observed is not None
    assert (stage.libvirtd.asked, stage.status.observed.vcpus) == (["have 2 CPUs"], 2)


async def test_cpus_that_do_not_appear_are_an_error(stage: SessionStage) -> None:
    """Otherwise virt-handler would plug them again at once, in a loop."""
    await stage.define(domain_text().replace("<features>", "<vcpu current='1'>8</vcpu><features>"))
    stage.libvirtd.can_plug = False
    with pytest.raises(NoContact, match="the guest has 2 virtual CPUs, but it has 1"):
        await stage.perform(PlugCpus(POD_UID, 2, "test"))


async def test_requested_memory_is_read_back_and_its_progress_followed(stage: SessionStage) -> None:
    await stage.define()
    await stage.look()
    await stage.perform(PlugMemory(POD_UID, 1 << 30, "test"))
    assert stage.status.observed is not None
    assert (stage.libvirtd.asked, stage.status.observed.requested_bytes) == ([f"have {1 << 30} bytes more"], 1 << 30)
    assert stage.session.memory.is_begun


async def test_memory_that_is_not_requested_is_an_error(stage: SessionStage) -> None:
    await stage.define()
    stage.libvirtd.can_plug = False
    with pytest.raises(NoContact, match="it requested the new memory from the guest, but it did not"):
        await stage.perform(PlugMemory(POD_UID, 1 << 30, "test"))


async def test_memory_is_read_back_after_a_lost_response(stage: SessionStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The requested memory decides how the guest is sent."""
    guest = await stage.define()
    await stage.look()
    change = guest.set_memory

    async def change_without_response(requested_bytes: int) -> None:
        await change(requested_bytes)
        raise TimedOut("no answer")

    monkeypatch.setattr(guest, "set_memory", change_without_response)
    with pytest.raises(NoContact):
        await stage.perform(PlugMemory(POD_UID, 1 << 30, "test"))
    await stage.look()
    assert stage.status.observed is not None
    assert stage.status.observed.requested_bytes == 1 << 30

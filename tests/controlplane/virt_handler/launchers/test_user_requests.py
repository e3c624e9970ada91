# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User requests for a guest, over a session's connection. Which request a state allows: vmi/test_user_requests."""

from __future__ import annotations

from typing import get_args

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import TimedOut, WrongState
from controlplane.hypervisor.events import AgentChanged
from controlplane.links.handler import Verb
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from tests.controlplane.virt_handler.builders import (
    NODE,
    OFF,
    POD_UID,
    RUNNING,
    VMI_UID,
    a_vmi,
    domain_text,
    paused_vmi,
)
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeGuest
from tests.controlplane.virt_handler.launchers.session_stage import SessionStage
from tests.controlplane.virt_handler.migrating import come, stopping

BY_USER, BY_ERROR = State(Life.PAUSED, "user"), State(Life.PAUSED, "ioerror")
EVERY: tuple[Verb, ...] = get_args(Verb)


class Up(SessionStage):
    """A session with a running guest."""

    guest: FakeGuest

    async def request(self, verb: Verb, vmi: VirtualMachineInstance | None = None, *, thaw_after: int = 0) -> None:
        await self.session.user_requests.execute(verb, vmi, thaw_after=thaw_after)


@pytest.fixture
async def up() -> Up:
    up = Up()
    up.guest = await up.define()
    return up


async def test_a_guest_is_paused_and_resumed(up: Up) -> None:
    await up.request("pause")
    assert up.status.state == BY_USER
    await up.request("unpause")
    assert up.status.state == State(Life.RUNNING, "unpaused")
    assert up.libvirtd.asked == ["pause", "resume"]


@pytest.mark.parametrize("is_reported", [False, True])
async def test_a_second_pause_is_refused_once_the_first_is_in_the_status(up: Up, is_reported: bool) -> None:
    """Until then only this process knows of the pause, so the second caller waits for the status as well."""
    up.guest.life = BY_USER  # and virt-handler has not read it yet
    if is_reported:
        with pytest.raises(VerbRefused, match="already paused"):
            await up.request("pause", paused_vmi())
    else:
        await up.request("pause", a_vmi("Running"))
    assert up.libvirtd.asked == []


MIGRATING: dict[str, tuple[State, VirtualMachineInstance]] = {
    "about to be paused": (RUNNING, stopping()),
    "paused by libvirt": (State(Life.PAUSED, "migration"), stopping()),
    "paused by virt-handler": (BY_USER, stopping()),
    "not resumed after a failure": (BY_USER, stopping(failed=True, completed=True)),
    "not resumed after its arrival": (BY_USER, come(owner=NODE, pods=(POD_UID,), targetPodUID=POD_UID)),
}


@pytest.mark.parametrize(("state", "vmi"), MIGRATING.values(), ids=MIGRATING)
@pytest.mark.parametrize("verb", ["pause", "unpause", "reset"])
async def test_a_guest_paused_by_its_migration_refuses_requests(
    up: Up, verb: Verb, state: State, vmi: VirtualMachineInstance
) -> None:
    """Otherwise a restarted virt-handler could not tell whose pause it is."""
    up.guest.life = state
    with pytest.raises(VerbRefused, match="VMI is migrating"):
        await up.request(verb, vmi)
    assert up.libvirtd.asked == []


@pytest.mark.parametrize(
    "vmi",
    [
        stopping(failed=True, completed=True),
        come(owner=NODE, pods=(POD_UID,), targetPodUID=POD_UID),
        stopping(pods=(POD_UID,), sourcePodUID="gone", targetPodUID=POD_UID),
    ],
    ids=["failed", "arrived", "arrived, and the source died before it reported that"],
)
async def test_a_guest_that_runs_again_is_paused(up: Up, vmi: VirtualMachineInstance) -> None:
    await up.request("pause", vmi)
    assert up.libvirtd.asked == ["pause"]


@pytest.mark.parametrize(("verb", "asked"), [("reset", "reset"), ("softreboot", "reboot")])
async def test_a_guest_is_reset_or_rebooted(up: Up, verb: Verb, asked: str) -> None:
    await up.request(verb)
    assert up.libvirtd.asked == [asked]


async def test_file_systems_are_frozen_and_thawed_by_the_agent(up: Up) -> None:
    with pytest.raises(VerbRefused, match="does not have guest agent connected"):
        await up.request("freeze")
    up.guest.agent = FakeAgent(fsfreeze_freeze=1, fsfreeze_thaw=1)
    up.session.connection.domain.note([AgentChanged("domain", is_connected=True)])
    await up.request("freeze", thaw_after=60)
    agent = up.status.agent
    assert (agent and agent.is_frozen, up.session.freeze._seconds_left()) == (True, 60)
    up.guest.agent.answers["guest-fsfreeze-status"] = '{"return": "frozen"}'
    await up.request("unfreeze")
    assert up.guest.agent.asked[-2:] == ["guest-fsfreeze-status", "guest-fsfreeze-thaw"]
    assert up.session.freeze._seconds_left() is None


async def test_a_users_pause_on_top_of_an_io_error_is_recorded_and_ends(up: Up) -> None:
    """The reconciler ends the pause of the I/O error."""
    up.guest.life = BY_ERROR
    await up.request("pause")
    assert (up.status.is_paused_by_user, up.status.state) == (True, BY_ERROR)
    await up.request("unpause")
    assert (up.status.is_paused_by_user, up.status.state) == (False, BY_ERROR)
    assert up.libvirtd.asked == ["pause"]
    with pytest.raises(VerbRefused, match="ioerror"):
        await up.request("unpause")


async def test_an_io_error_just_before_the_pause_does_not_lose_it(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(guest: FakeGuest) -> None:
        guest.life = BY_ERROR

    monkeypatch.setattr(FakeGuest, "pause", late)
    await up.request("pause")
    assert up.status.is_paused_by_user


async def test_a_user_resumes_a_guest_paused_by_its_watchdog(up: Up) -> None:
    up.guest.life = State(Life.PAUSED, "watchdog")
    await up.request("pause")
    await up.request("unpause")
    assert up.libvirtd.asked == ["pause", "resume"]
    assert (up.status.is_paused_by_user, up.status.state) == (False, State(Life.RUNNING, "unpaused"))


@pytest.mark.parametrize("verb", EVERY)
@pytest.mark.parametrize("life", [OFF, State(Life.PAUSED, "starting_up"), None], ids=["off", "starting", "no domain"])
async def test_a_guest_that_does_not_run_refuses_requests(up: Up, verb: Verb, life: State | None) -> None:
    if life is None:
        up.libvirtd.guest = None
    else:
        up.guest.life = life
    with pytest.raises(VerbRefused, match="VMI is not running"):
        await up.request(verb)
    assert up.libvirtd.asked == []


@pytest.mark.parametrize("other", [VMI_UID, POD_UID], ids=["another VMI's", "another Pod's"])
async def test_a_domain_with_another_identity_refuses_requests(up: Up, other: str) -> None:
    await up.define(domain_text().replace(other, "f" * 36))
    with pytest.raises(VerbRefused, match="VMI is not running"):
        await up.request("reset")
    assert up.libvirtd.asked == []


@pytest.mark.parametrize(
    ("error", "meaning"),
    [(WrongState("the domain is not running"), VerbRefused), (TimedOut("no answer within 10 s"), NoContact)],
    ids=["ended meanwhile", "no response"],
)
async def test_an_error_of_libvirt_is_a_refusal_or_a_lost_contact(
    up: Up, error: Exception, meaning: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_unused: FakeGuest) -> None:
        raise error

    monkeypatch.setattr(FakeGuest, "reset", fail)
    with pytest.raises(meaning, match=str(error)):
        await up.request("reset")


async def test_a_request_without_a_connection_fails(up: Up) -> None:
    up.session.connection.current = None
    with pytest.raises(NoContact, match="not connected"):
        await up.request("reset")
    with pytest.raises(NoContact, match="not connected"):
        await up.session.inquire(["guest-info"])
    with pytest.raises(NoContact, match="not connected"):
        await up.session.take_screenshot()


async def test_only_our_guests_screen_is_seen_also_while_it_is_paused(up: Up) -> None:
    up.guest.life = BY_USER
    assert await up.session.take_screenshot() == up.guest.screen
    up.guest.screen = None
    with pytest.raises(VerbRefused, match="no screens"):
        await up.session.take_screenshot()
    await up.define(domain_text().replace(VMI_UID, "f" * 36))
    up.session.connection.domain.begin()
    up.session.record.publish(observed=None)
    await up.look()
    with pytest.raises(VerbRefused, match="VMI is not running"):
        await up.session.take_screenshot()


async def test_only_our_guests_agent_is_queried(up: Up) -> None:
    up.guest.agent = FakeAgent()
    await up.look()
    assert "guest-info" in await up.session.inquire(["guest-info"])
    up.session.agent.look(up.guest, is_connected=False)
    with pytest.raises(VerbRefused, match="VMI does not have guest agent connected"):
        await up.session.inquire(["guest-info"])
    await up.define(domain_text().replace(VMI_UID, "f" * 36))
    up.session.connection.domain.begin()
    up.session.record.publish(observed=None)
    await up.look()
    with pytest.raises(VerbRefused, match="VMI is not running"):
        await up.session.inquire(["guest-info"])

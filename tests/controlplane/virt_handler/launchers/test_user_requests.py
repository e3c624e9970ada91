# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User requests for a guest, over a session's connection."""

from __future__ import annotations

from typing import get_args

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import TimedOut, WrongState
from controlplane.hypervisor.events import AgentChanged
from controlplane.links.handler import Verb
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from tests.controlplane.virt_handler.builders import (
    NODE,
    OFF,
    POD_UID,
    RUNNING,
    VMI_UID,
    a_vmi,
    domain_text,
    told_paused,
)
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeConnection, FakeGuest, FakeLibvirtd
from tests.controlplane.virt_handler.launchers.test_operations import a_session
from tests.controlplane.virt_handler.moving import come, stopping

BY_ERROR = State(Life.PAUSED, "ioerror")
EVERY: tuple[Verb, ...] = get_args(Verb)


class Up:
    """A session with a running guest."""

    def __init__(self, libvirtd: FakeLibvirtd, session: Session, guest: FakeGuest) -> None:
        self.libvirtd, self.session, self.guest = libvirtd, session, guest

    @property
    def held(self) -> bool | None:
        return self.session.launcher().status.is_paused_by_user

    @property
    def state(self) -> State | None:
        return self.session.launcher().status.state


@pytest.fixture
async def up() -> Up:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())
    guest.life = RUNNING
    return Up(libvirtd, session, guest)


async def test_a_guest_is_paused_and_resumed(up: Up) -> None:
    await up.session.user_requests.execute("pause", None)
    assert up.state == State(Life.PAUSED, "user"), "what is known afterwards"
    await up.session.user_requests.execute("unpause", None)
    assert up.state == State(Life.RUNNING, "unpaused")
    assert up.libvirtd.asked == ["pause", "resume"]


@pytest.mark.parametrize("is_told", [False, True])
async def test_a_second_pause_is_refused_once_the_first_is_in_the_status(up: Up, is_told: bool) -> None:
    """Until then only this process knows of the pause, so the second caller waits for the status as well."""
    up.guest.life = State(Life.PAUSED, "user")
    vmi = told_paused() if is_told else a_vmi("Running")
    if is_told:
        with pytest.raises(VerbRefused, match="already paused"):
            await up.session.user_requests.execute("pause", vmi)
    else:
        await up.session.user_requests.execute("pause", vmi)
    assert up.libvirtd.asked == []


@pytest.mark.parametrize("state", [RUNNING, State(Life.PAUSED, "migration"), State(Life.PAUSED, "user")])
@pytest.mark.parametrize("verb", ["pause", "unpause", "reset"])
async def test_a_guest_paused_by_its_migration_refuses_requests(up: Up, verb: Verb, state: State) -> None:
    """Otherwise a restarted virt-handler could not tell whose pause it is."""
    up.guest.life = state
    with pytest.raises(VerbRefused, match="VMI is migrating"):
        await up.session.user_requests.execute(verb, stopping())
    assert up.libvirtd.asked == []


async def test_a_guest_at_its_target_obeys_though_the_migration_never_ended(up: Up) -> None:
    """The source died before it could report that the guest has left, so the migration never completes."""
    await up.session.user_requests.execute(
        "pause", stopping(pods=(POD_UID,), sourcePodUID="gone", targetPodUID=POD_UID)
    )
    assert up.libvirtd.asked == ["pause"]


@pytest.mark.parametrize(
    "vmi",
    [stopping(failed=True, completed=True), come(owner=NODE, pods=(POD_UID,), targetPodUID=POD_UID)],
    ids=["stopped for nothing", "it has come here"],
)
@pytest.mark.parametrize("verb", ["pause", "unpause", "reset"])
async def test_a_guest_that_its_migration_still_has_to_resume_refuses_requests(
    up: Up, verb: Verb, vmi: VirtualMachineInstance
) -> None:
    up.guest.life = State(Life.PAUSED, "user")
    with pytest.raises(VerbRefused, match="VMI is migrating"):
        await up.session.user_requests.execute(verb, vmi)
    up.guest.life = RUNNING
    await up.session.user_requests.execute("pause", vmi)
    assert up.libvirtd.asked == ["pause"]


@pytest.mark.parametrize(("verb", "asked"), [("reset", "reset"), ("softreboot", "reboot")])
async def test_a_guest_is_reset_or_rebooted(up: Up, verb: Verb, asked: str) -> None:
    await up.session.user_requests.execute(verb, None)
    assert up.libvirtd.asked == [asked]


async def test_file_systems_are_frozen_and_thawed_by_the_agent(up: Up) -> None:
    with pytest.raises(VerbRefused, match="does not have guest agent connected"):
        await up.session.user_requests.execute("freeze", None)
    up.guest.agent = FakeAgent(fsfreeze_freeze=1, fsfreeze_thaw=1)
    up.session.connection.domain.note([AgentChanged("domain", is_connected=True)])
    await up.session.user_requests.execute("freeze", None, thaw_after=60)
    state = up.session.launcher().status.told
    assert (state and state.is_frozen, up.session.freeze._left()) == (True, 60)
    up.guest.agent.answers["guest-fsfreeze-status"] = '{"return": "frozen"}'
    await up.session.user_requests.execute("unfreeze", None)
    assert up.guest.agent.asked[-2:] == ["guest-fsfreeze-status", "guest-fsfreeze-thaw"]
    assert up.session.freeze._left() is None


async def test_a_request_reads_the_current_state_first(up: Up) -> None:
    await up.session.connection.refresh()
    up.guest.life = State(Life.PAUSED, "user")  # and virt-handler has not read it yet
    with pytest.raises(VerbRefused, match="already paused"):
        await up.session.user_requests.execute("pause", None)


async def test_a_users_pause_on_top_of_an_io_error_is_recorded_and_ends(up: Up) -> None:
    up.guest.life = BY_ERROR
    await up.session.user_requests.execute("pause", None)
    assert (up.held, up.state) == (True, BY_ERROR)

    await up.session.user_requests.execute("unpause", None)

    assert (up.held, up.state) == (False, BY_ERROR), "the I/O error's own pause is not a person's to end"
    assert up.libvirtd.asked == ["pause"]
    with pytest.raises(VerbRefused, match="ioerror"):
        await up.session.user_requests.execute("unpause", None)


async def test_an_io_error_just_before_the_pause_does_not_lose_it(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(guest: FakeGuest) -> None:
        guest.life = BY_ERROR

    monkeypatch.setattr(FakeGuest, "pause", late)
    await up.session.user_requests.execute("pause", None)
    assert up.held


async def test_a_user_resumes_a_guest_paused_by_something_else(up: Up) -> None:
    up.guest.life = State(Life.PAUSED, "watchdog")
    await up.session.user_requests.execute("pause", None)
    await up.session.user_requests.execute("unpause", None)
    assert up.libvirtd.asked == ["pause", "resume"]
    assert (up.held, up.state) == (False, State(Life.RUNNING, "unpaused"))


@pytest.mark.parametrize("verb", EVERY)
@pytest.mark.parametrize("life", [OFF, State(Life.PAUSED, "starting_up"), None], ids=["off", "starting", "no domain"])
async def test_a_guest_that_does_not_run_refuses_requests(up: Up, verb: Verb, life: State | None) -> None:
    if life is None:
        up.libvirtd.guest = None
    else:
        up.guest.life = life
    with pytest.raises(VerbRefused, match="VMI is not running"):
        await up.session.user_requests.execute(verb, None)
    assert up.libvirtd.asked == []


@pytest.mark.parametrize("verb", EVERY)
@pytest.mark.parametrize("other", [VMI_UID, POD_UID], ids=["another VMI's", "another Pod's"])
async def test_a_domain_with_another_identity_refuses_requests(up: Up, verb: Verb, other: str) -> None:
    connection = up.session.connection.current
    assert isinstance(connection, FakeConnection)
    guest = await connection.define(domain_text().replace(other, "f" * 36))
    guest.life = RUNNING
    with pytest.raises(VerbRefused):
        await up.session.user_requests.execute(verb, None)
    assert up.libvirtd.asked == []


async def test_a_guest_that_ended_meanwhile_refuses_the_request(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(_unused: FakeGuest) -> None:
        raise WrongState("the domain is not running")

    monkeypatch.setattr(FakeGuest, "reset", gone)
    with pytest.raises(VerbRefused, match="the domain is not running"):
        await up.session.user_requests.execute("reset", None)


async def test_a_request_without_an_answer_is_no_refusal(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unanswered(_unused: FakeGuest) -> None:
        raise TimedOut("no answer within 10 s")

    monkeypatch.setattr(FakeGuest, "reset", unanswered)
    with pytest.raises(NoContact, match="no answer"):
        await up.session.user_requests.execute("reset", None)
    up.session.connection.current = None
    with pytest.raises(NoContact, match="not connected"):
        await up.session.user_requests.execute("reset", None)

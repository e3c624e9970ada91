# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Soft reboot: by the guest agent, or by the power button."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from controlplane.domain.agent import PING, SHUTDOWN
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError
from controlplane.virt_handler.launchers.agent import Agent
from controlplane.virt_handler.launchers.soft_reboot import soft_reboot
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from tests.controlplane.virt_handler.builders import VMI_UID, domain_text
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeClock, FakeConnection, FakeGuest, FakeLibvirtd

DONE = AgentSilent("no answer: it has other things to do")


class Stage:
    """A guest with a power button, and maybe an agent."""

    def __init__(self, guest: FakeGuest) -> None:
        self.guest = guest
        self.presses = 0
        self.asking = Agent(FakeClock(), lambda: 0.5, asyncio.Semaphore(4), lambda _unused: None)

    async def press(self) -> None:
        self.presses += 1

    async def ask(self, agent: FakeAgent | None, *, has_button: bool = True) -> None:
        self.guest.agent = agent
        self.asking.look(self.guest, is_connected=agent is not None)
        await soft_reboot(self.asking, self.press if has_button else None)


@pytest.fixture
async def stage() -> Stage:
    return Stage(await FakeConnection(FakeLibvirtd(VMI_UID)).define(domain_text()))


def an_agent(shutdown: Any = DONE, ping: Any = None) -> FakeAgent:
    return FakeAgent(shutdown=shutdown, ping={} if ping is None else ping)


async def test_an_agent_reboots_the_guest_without_the_button(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Any] = []
    ask_plainly = FakeGuest.ask_agent

    async def ask_agent(guest: FakeGuest, command: str, seconds: int) -> str:
        commands.append(json.loads(command))
        return await ask_plainly(guest, command, seconds)

    monkeypatch.setattr(FakeGuest, "ask_agent", ask_agent)
    await stage.ask(an_agent())

    assert commands == [{"execute": PING}, {"execute": SHUTDOWN, "arguments": {"mode": "reboot"}}]
    assert stage.presses == 0


async def test_without_an_agent_the_button_is_pressed(stage: Stage) -> None:
    await stage.ask(None)
    assert stage.presses == 1


@pytest.mark.parametrize("said", [AgentSilent("hangs"), Disconnected("gone"), HypervisorError("unknown command")])
async def test_with_an_agent_that_does_not_answer_the_button_is_pressed(stage: Stage, said: Exception) -> None:
    agent = an_agent(ping=said)
    await stage.ask(agent)
    assert (agent.asked, stage.presses) == ([PING], 1)


async def test_a_guest_without_agent_and_button_refuses(stage: Stage) -> None:
    with pytest.raises(VerbRefused, match="no ACPI feature, and VMI does not have guest agent connected"):
        await stage.ask(None, has_button=False)
    with pytest.raises(VerbRefused, match="no ACPI feature, and the guest's agent does not respond: hangs"):
        await stage.ask(an_agent(ping=AgentSilent("hangs")), has_button=False)


async def test_a_refusal_by_the_agent_is_final(stage: Stage) -> None:
    """A frozen agent refuses. The guest could not write before it reboots, and the button would not change that."""
    with pytest.raises(VerbRefused, match="the guest's agent refuses it: disabled in frozen state"):
        await stage.ask(an_agent(shutdown=HypervisorError("disabled in frozen state")))
    assert stage.presses == 0


async def test_a_broken_connection_is_reported(stage: Stage) -> None:
    with pytest.raises(NoContact, match="gone"):
        await stage.ask(an_agent(shutdown=Disconnected("gone")))

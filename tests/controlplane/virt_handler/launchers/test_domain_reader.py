# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a domain's description is read, and when it is known well enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from controlplane.domain.observed import Observed
from controlplane.hypervisor.errors import Disconnected
from controlplane.hypervisor.events import AgentChanged, Event, LifecycleChanged
from controlplane.virt_handler.launchers.domain_reader import DomainReader
from tests.controlplane.virt_handler.builders import VMI_UID, domain_text
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeConnection, FakeGuest, FakeLibvirtd

CAME = AgentChanged("domain", is_connected=True)


async def a_guest(xml: str = "") -> FakeGuest:
    return await FakeConnection(FakeLibvirtd(VMI_UID)).define(xml or domain_text())


@pytest.mark.parametrize(
    ("happened", "reads"),
    [([LifecycleChanged("domain", "resumed")], 1), ([CAME], 2), ([], 2)],
    ids=["something else", "the agent came or went", "nothing, for a long time"],
)
async def test_a_description_is_read_anew_when_it_may_say_something_else(happened: list[Event], reads: int) -> None:
    guest, seen = await a_guest(), DomainReader()
    known = await seen.read(guest, None, {})
    assert known is not None
    assert not known.is_agent_connected
    guest.agent = FakeAgent()
    seen.note(happened)
    for _unused in range(3):
        known = await seen.read(guest, known, {})
    assert guest.descriptions == reads
    assert known is not None
    assert known.is_agent_connected is (reads == 2)


async def test_an_agent_that_comes_while_libvirt_answers_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb looks at the domain as well: what its look was told is older than the event."""
    guest, seen = await a_guest(), DomainReader()
    known = await seen.read(guest, None, {})
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(read: Callable[[str], Observed]) -> Observed:
        asked.set()
        await may_answer.wait()
        return read(domain_text())

    seen.note([CAME])
    with monkeypatch.context() as slowly:
        slowly.setattr(guest, "described", slow)
        looking = asyncio.create_task(seen.read(guest, known, {}))
        await asked.wait()
        guest.agent = FakeAgent()
        seen.note([CAME])
        may_answer.set()
        known = await looking
    known = await seen.read(guest, known, {})
    assert known is not None
    assert known.is_agent_connected


async def test_an_agent_that_comes_when_libvirt_does_not_answer_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    guest, seen = await a_guest(), DomainReader()
    known = await seen.read(guest, None, {})
    guest.agent = FakeAgent()
    seen.note([CAME])

    async def fail(_unused: object) -> str:
        raise Disconnected("cannot describe")

    with monkeypatch.context() as broken:
        broken.setattr(guest, "described", fail)
        with pytest.raises(Disconnected):
            await seen.read(guest, known, {})
    known = await seen.read(guest, known, {})
    assert known is not None
    assert known.is_agent_connected


async def test_a_description_that_turns_bad_leaves_what_was_known_and_is_not_read_again() -> None:
    guest, bad, seen = await a_guest(), await a_guest("<domain>"), DomainReader()
    known = await seen.read(guest, None, {})
    for _unused in range(3):
        seen.note([CAME])
        assert await seen.read(bad, known, {}) == known
    assert bad.descriptions == 1
    seen.begin()
    assert await seen.read(bad, None, {}) is None
    assert bad.descriptions == 2

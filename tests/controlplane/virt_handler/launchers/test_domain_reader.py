# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a domain's description is read, and when the last one is good enough."""

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
async def test_a_description_is_read_again_when_it_may_have_changed(happened: list[Event], reads: int) -> None:
    guest, reader = await a_guest(), DomainReader()
    domain = await reader.read(guest, None, {})
    assert domain is not None
    assert not domain.is_agent_connected
    guest.agent = FakeAgent()
    reader.note(happened)
    for _unused in range(3):
        domain = await reader.read(guest, domain, {})
    assert guest.descriptions == reads
    assert domain is not None
    assert domain.is_agent_connected is (reads == 2)


async def test_an_agent_event_during_a_read_causes_another_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user request reads the domain too, and its answer may be older than the event."""
    guest, reader = await a_guest(), DomainReader()
    domain = await reader.read(guest, None, {})
    is_reading, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(read: Callable[[str], Observed]) -> Observed:
        is_reading.set()
        await may_answer.wait()
        return read(domain_text())

    reader.note([CAME])
    with monkeypatch.context() as slowly:
        slowly.setattr(guest, "described", slow)
        reading = asyncio.create_task(reader.read(guest, domain, {}))
        await is_reading.wait()
        guest.agent = FakeAgent()
        reader.note([CAME])
        may_answer.set()
        domain = await reading
    domain = await reader.read(guest, domain, {})
    assert domain is not None
    assert domain.is_agent_connected


async def test_an_agent_event_before_a_failed_read_causes_another_read(monkeypatch: pytest.MonkeyPatch) -> None:
    guest, reader = await a_guest(), DomainReader()
    domain = await reader.read(guest, None, {})
    guest.agent = FakeAgent()
    reader.note([CAME])

    async def fail(_unused: object) -> str:
        raise Disconnected("cannot describe")

    with monkeypatch.context() as broken:
        broken.setattr(guest, "described", fail)
        with pytest.raises(Disconnected):
            await reader.read(guest, domain, {})
    domain = await reader.read(guest, domain, {})
    assert domain is not None
    assert domain.is_agent_connected


async def test_an_agent_event_before_a_cancelled_read_causes_another_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller of a user request may be gone before libvirtd answers."""
    guest, reader = await a_guest(), DomainReader()
    domain = await reader.read(guest, None, {})
    guest.agent = FakeAgent()
    reader.note([CAME])
    is_reading = asyncio.Event()

    async def hang(_unused: object) -> str:
        is_reading.set()
        await asyncio.Event().wait()
        return ""

    with monkeypatch.context() as broken:
        broken.setattr(guest, "described", hang)
        reading = asyncio.create_task(reader.read(guest, domain, {}))
        await is_reading.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    domain = await reader.read(guest, domain, {})
    assert domain is not None
    assert domain.is_agent_connected


async def test_an_unreadable_description_keeps_the_last_one_and_is_not_read_again() -> None:
    guest, bad, reader = await a_guest(), await a_guest("<domain>"), DomainReader()
    domain = await reader.read(guest, None, {})
    for _unused in range(3):
        reader.note([CAME])
        assert await reader.read(bad, domain, {}) == domain
    assert bad.descriptions == 1
    reader.begin()
    assert await reader.read(bad, None, {}) is None
    assert bad.descriptions == 2

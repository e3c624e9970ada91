# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.hypervisor.events import AgentChanged, EventQueue, LifecycleChanged, cause_of_end
from tests.controlplane.hypervisor.conftest import OnFake
from tests.controlplane.hypervisor.fake_libvirt import Connection, Domain


def subscribe(events: Any, connection: Connection, put: Callable[[object], None]) -> list[int]:
    registrations: list[int] = []
    events.register(connection, put, registrations)
    return registrations


def test_callbacks_become_events(on_fake: OnFake) -> None:
    virt, events = on_fake.libvirt, on_fake.events
    connection, domain, received = Connection(), Domain(on_fake.libvirt, "web"), []
    subscribe(events, connection, received.append)
    connection.callbacks[virt.VIR_DOMAIN_EVENT_ID_LIFECYCLE](connection, domain, virt.VIR_DOMAIN_EVENT_STOPPED, 5, None)
    connection.callbacks[virt.VIR_DOMAIN_EVENT_ID_LIFECYCLE](connection, domain, 5, 0, None)
    agent = connection.callbacks[virt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE]
    agent(connection, domain, virt.VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED, 0, None)
    agent(connection, domain, 1, 0, None)
    assert received == [
        events.LifecycleChanged("web", "stopped"),
        events.LifecycleChanged("web", "other"),
        events.AgentChanged("web", True),
        events.AgentChanged("web", False),
    ]


def test_events_have_the_cause_of_a_crash(on_fake: OnFake) -> None:
    """A guest with a crash kernel continues, and so does a guest that its watchdog resets: these are no crashes."""
    virt, events = on_fake.libvirt, on_fake.events
    connection, domain, received = Connection(), Domain(on_fake.libvirt, "web"), []
    subscribe(events, connection, received.append)
    lifecycle = connection.callbacks[virt.VIR_DOMAIN_EVENT_ID_LIFECYCLE]
    watchdog = connection.callbacks[virt.VIR_DOMAIN_EVENT_ID_WATCHDOG]
    lifecycle(connection, domain, virt.VIR_DOMAIN_EVENT_CRASHED, virt.VIR_DOMAIN_EVENT_CRASHED_PANICKED, None)
    lifecycle(connection, domain, virt.VIR_DOMAIN_EVENT_CRASHED, virt.VIR_DOMAIN_EVENT_CRASHED_CRASHLOADED, None)
    lifecycle(connection, domain, virt.VIR_DOMAIN_EVENT_STOPPED, virt.VIR_DOMAIN_EVENT_CRASHED_PANICKED, None)
    watchdog(connection, domain, virt.VIR_DOMAIN_EVENT_WATCHDOG_RESET, None)
    watchdog(connection, domain, virt.VIR_DOMAIN_EVENT_WATCHDOG_POWEROFF, None)
    assert received == [
        events.LifecycleChanged("web", "crashed", "panicked"),
        events.LifecycleChanged("web", "crashed"),
        events.LifecycleChanged("web", "stopped"),
        events.LifecycleChanged("web", "watchdog"),
        events.LifecycleChanged("web", "watchdog", "watchdog"),
    ]


def test_the_last_cause_counts() -> None:
    stopped, reset = LifecycleChanged("web", "stopped"), LifecycleChanged("web", "watchdog")
    panicked, expired = (LifecycleChanged("web", "crashed", cause) for cause in ("panicked", "watchdog"))
    assert cause_of_end(()) == cause_of_end((stopped, reset, AgentChanged("web", False))) == ""
    assert cause_of_end((panicked, stopped)) == "panicked"
    assert cause_of_end((panicked, expired, stopped)) == "watchdog"


def test_no_subscription_to_events_with_a_text(on_fake: OnFake) -> None:
    """The binding decodes the text before it calls us and prints a traceback if it cannot."""
    virt, connection = on_fake.libvirt, Connection()
    subscribe(on_fake.events, connection, lambda event: None)
    assert {*connection.callbacks} == {
        virt.VIR_DOMAIN_EVENT_ID_LIFECYCLE,
        virt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE,
        virt.VIR_DOMAIN_EVENT_ID_WATCHDOG,
    }


def test_every_subscription_is_removed_on_a_dead_connection(on_fake: OnFake) -> None:
    """Each subscription keeps the connection in memory, even if libvirtd refuses to remove it."""
    connection = Connection()
    registrations = subscribe(on_fake.events, connection, lambda event: None)
    connection.is_dead = True
    on_fake.events.deregister(connection, registrations)
    assert connection.callbacks == {}


@pytest.mark.parametrize(
    "error",
    [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), SystemError("a result with an exception set")],
    ids=["no text", "no text, in the binding's other words"],
)
def test_subscriptions_are_removed_despite_an_undecodable_error(on_fake: OnFake, error: Exception) -> None:
    class Rude(Connection):
        def domainEventDeregisterAny(self, identifier: int) -> None:  # noqa: N802
            super().domainEventDeregisterAny(identifier)
            raise error

    connection = Rude()
    on_fake.events.deregister(connection, subscribe(on_fake.events, connection, lambda event: None))
    assert connection.callbacks == {}


def test_the_reason_of_a_closed_connection_has_a_name(on_fake: OnFake) -> None:
    reason = on_fake.libvirt.VIR_CONNECT_CLOSE_REASON_KEEPALIVE
    assert (on_fake.events.close_reason(reason), on_fake.events.close_reason(2)) == ("keepalive", "unknown")


async def test_a_flood_of_events_drops_only_the_oldest() -> None:
    queue = EventQueue()
    for number in range(1000):
        queue.put(LifecycleChanged(str(number), "stopped"))
    assert await queue.get() == LifecycleChanged("744", "stopped")


async def test_drain_returns_all_queued_events() -> None:
    queue = EventQueue()
    events = [LifecycleChanged(str(number), "stopped") for number in range(3)]
    for event in events:
        queue.put(event)
    assert (queue.drain(), queue.drain()) == (events, [])

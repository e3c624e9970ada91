# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.state import Life, State
from controlplane.domain.statistics import Statistics
from tests.controlplane.hypervisor.conftest import OnFake
from tests.controlplane.hypervisor.fake_libvirt import Domain, libvirtError


@pytest.mark.parametrize(
    ("number", "reason", "expected"),
    [
        ("RUNNING", "RUNNING_BOOTED", State(Life.RUNNING, "booted")),
        ("BLOCKED", "RUNNING_BOOTED", State(Life.BLOCKED, "unknown")),
        ("PAUSED", "PAUSED_IOERROR", State(Life.PAUSED, "ioerror")),
        ("PAUSED", "PAUSED_POSTCOPY_FAILED", State(Life.PAUSED, "postcopy_failed")),
        ("SHUTDOWN", "SHUTDOWN_USER", State(Life.SHUTTING_DOWN, "user")),
        ("SHUTOFF", "SHUTOFF_CRASHED", State(Life.SHUT_OFF, "crashed")),
        ("SHUTOFF", "PAUSED_USER", State(Life.SHUT_OFF, "unknown")),
        ("CRASHED", "CRASHED_PANICKED", State(Life.CRASHED, "panicked")),
        ("PMSUSPENDED", "PAUSED_USER", State(Life.SUSPENDED, "unknown")),
        ("NOSTATE", "PAUSED_USER", State(Life.UNKNOWN, "unknown")),
    ],
)
async def test_a_state_is_read_by_name(on_fake: OnFake, number: str, reason: str, expected: State) -> None:
    domain = Domain(on_fake.libvirt)
    domain.numbers = (
        getattr(on_fake.libvirt, f"VIR_DOMAIN_{number}"),
        getattr(on_fake.libvirt, f"VIR_DOMAIN_{reason}"),
    )
    assert await on_fake.domain.Domain(domain, "web").state() == expected


async def test_operations_pass_their_flags(on_fake: OnFake) -> None:
    domain = Domain(on_fake.libvirt)
    guest = on_fake.domain.Domain(domain, "web")
    await guest.start(is_paused=True)
    await guest.shutdown()
    await guest.destroy()
    await guest.kill()
    virt = on_fake.libvirt
    assert domain.flags == [
        virt.VIR_DOMAIN_START_PAUSED,
        virt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN,
        virt.VIR_DOMAIN_DESTROY_GRACEFUL,
        0,
    ]


async def test_an_error_names_the_operation_and_the_domain(on_fake: OnFake) -> None:
    domain = Domain(on_fake.libvirt)
    domain.failure = libvirtError("domain is not running", on_fake.libvirt.VIR_ERR_OPERATION_INVALID)
    with pytest.raises(on_fake.errors.WrongState, match="cannot shut down domain web: domain is not running"):
        await on_fake.domain.Domain(domain, "web").shutdown()


async def test_the_agent_has_a_deadline_for_the_time(on_fake: OnFake) -> None:
    """libvirt itself would wait for an agent without end, and refuse all further requests to it."""
    domain = Domain(on_fake.libvirt)
    await on_fake.domain.Domain(domain, "web").set_time(lambda: 1_700_000_000.25, 5)
    assert domain.agent_calls == [
        ("timeout", 5, 0),
        ("time", {"seconds": 1_700_000_000, "nseconds": 250_000_000}, 0),
    ]


@pytest.mark.parametrize(
    ("counters", "expected"),
    [({"cpu.time": 5, "cpu.vendor": "x"}, Statistics({"cpu.time": 5})), (None, Statistics())],
    ids=["known", "none"],
)
async def test_statistics_do_not_wait_for_another_call(
    on_fake: OnFake, counters: dict[str, object] | None, expected: Statistics
) -> None:
    domain = Domain(on_fake.libvirt)
    domain.counters = counters

    assert await on_fake.domain.Domain(domain, "web").statistics() == expected
    assert domain.flags == [on_fake.libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT]

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.links.handler import Verb
from controlplane.virt_handler.vmi.user_requests import is_paused_by_user, refuse, user_pause_after
from tests.controlplane.virt_handler.builders import a_vmi, paused_vmi, seen

RUNNING, BY_USER = State(Life.RUNNING, "booted"), State(Life.PAUSED, "user")
BY_ERROR, BY_WATCHDOG = State(Life.PAUSED, "ioerror"), State(Life.PAUSED, "watchdog")


@pytest.mark.parametrize(
    ("state", "remembered", "vmi", "expected"),
    [
        (RUNNING, None, paused_vmi(), False),
        (RUNNING, True, paused_vmi(), False),
        (None, True, paused_vmi(), False),
        (BY_USER, None, None, True),
        (BY_USER, False, None, True),
        (BY_ERROR, True, None, True),
        (BY_ERROR, False, paused_vmi(), False),
        (BY_ERROR, None, paused_vmi(), True),
        (BY_ERROR, None, paused_vmi(status="False"), False),
        (BY_ERROR, None, paused_vmi("PausedIOError"), False),
        (BY_ERROR, None, a_vmi("Running"), False),
        (BY_ERROR, None, None, False),
        (BY_WATCHDOG, True, None, True),
        (BY_WATCHDOG, None, None, False),
    ],
)
def test_who_paused_a_guest(
    state: State | None, remembered: bool | None, vmi: VirtualMachineInstance | None, expected: bool
) -> None:
    assert is_paused_by_user(vmi, seen(state, is_paused_by_user=remembered)) is expected


@pytest.mark.parametrize("held", [None, False, True])
def test_a_users_pause_ends_with_the_guests_pause(held: bool | None) -> None:
    assert user_pause_after(held, BY_ERROR) is held
    assert user_pause_after(held, None) is held
    assert [user_pause_after(held, state) for state in (RUNNING, BY_USER)] == [False, False]


NOT_PAUSED, ALREADY = "VMI is not paused", "VMI is already paused"
TABLE: dict[tuple[Verb, State, bool], str | None] = {
    ("pause", RUNNING, False): None,
    ("pause", BY_USER, True): ALREADY,
    ("pause", BY_ERROR, False): None,
    ("pause", BY_ERROR, True): ALREADY,
    ("unpause", RUNNING, False): NOT_PAUSED,
    ("unpause", BY_USER, True): None,
    ("unpause", BY_ERROR, True): None,
    ("unpause", BY_ERROR, False): "not paused by a user but by libvirt (ioerror)",
    ("reset", RUNNING, False): None,
    ("reset", BY_USER, True): None,
    ("softreboot", RUNNING, False): None,
    ("softreboot", BY_USER, True): "VMI is paused",
    ("softreboot", BY_ERROR, False): "VMI is paused",
    ("freeze", RUNNING, False): None,
    ("freeze", BY_USER, True): "VMI is paused",
    ("unfreeze", RUNNING, False): None,
    ("unfreeze", BY_ERROR, False): "VMI is paused",
}


@pytest.mark.parametrize(("asked", "expected"), TABLE.items())
def test_requests_that_a_state_allows(asked: tuple[Verb, State, bool], expected: str | None) -> None:
    verb, state, is_paused = asked
    refusal = refuse(verb, state, is_paused_by_user=is_paused, has_acpi=True, has_agent=False)
    assert (refusal is None) is (expected is None)
    assert (expected or "") in (refusal or "")


@pytest.mark.parametrize(("acpi", "agent"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_guest_without_acpi_and_agent_refuses_a_soft_reboot(acpi: bool, agent: bool) -> None:
    refusal = refuse("softreboot", RUNNING, is_paused_by_user=False, has_acpi=acpi, has_agent=agent)
    nothing = "VMI neither have the agent connected nor the ACPI feature enabled"
    assert refusal == (None if acpi or agent else nothing)

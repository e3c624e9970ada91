# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api.objects.state_change_requests import asks_paused, pending, start_request, switches_on
from controlplane.api.objects.vm import StateChangeRequest

START = StateChangeRequest(action="Start")
STOP_OF_A, STOP = StateChangeRequest(action="Stop", uid="a"), StateChangeRequest(action="Stop")


@pytest.mark.parametrize(
    ("request_", "is_paused"),
    [
        (StateChangeRequest(action="Start", data={"paused": "true"}), True),
        (StateChangeRequest(action="Start", data={"paused": "True"}), True),
        (StateChangeRequest(action="Start", data={"paused": "false"}), False),
        (StateChangeRequest(action="Start", data={"paused": ""}), False),
        (START, False),
        (StateChangeRequest(action="Stop", data={"paused": "true"}), False),
    ],
    ids=str,
)
def test_a_start_is_paused_only_when_the_request_says_so(request_: StateChangeRequest, is_paused: bool) -> None:
    assert asks_paused(request_) is is_paused


def test_a_start_enables_only_the_features_that_have_not_changed_since_the_request() -> None:
    start = start_request(is_paused=True, generation=3)
    assert switches_on(start, 3)
    assert not switches_on(start, 4)
    assert not switches_on(start_request(is_paused=True), 3)
    assert not switches_on(start_request(is_paused=False, generation=3), 3)


@pytest.mark.parametrize(
    ("queue", "uid", "is_own", "remaining"),
    [
        pytest.param((STOP_OF_A, START), "a", True, (STOP_OF_A, START), id="the instance that is named is there"),
        pytest.param((STOP_OF_A, START), "b", True, (), id="the next one is there: both are done"),
        pytest.param((STOP_OF_A, START), None, False, (START,), id="it is gone, and none has come"),
        pytest.param((STOP_OF_A,), "b", True, (), id="another is there"),
        pytest.param((STOP,), "b", True, (STOP,), id="a stop that names none is of whichever is there"),
        pytest.param((STOP,), None, False, (), id="and done when there is none"),
        pytest.param((START,), "theirs", False, (START,), id="another's instance answers no start"),
        pytest.param((START, START), "a", True, (), id="one instance answers all that were asked for"),
        pytest.param((START, STOP_OF_A), None, False, (START, STOP_OF_A), id="only the first counts"),
    ],
)
def test_completed_requests_are_removed(
    queue: tuple[StateChangeRequest, ...], uid: str | None, is_own: bool, remaining: tuple[StateChangeRequest, ...]
) -> None:
    assert pending(queue, uid=uid, is_own=is_own) == remaining

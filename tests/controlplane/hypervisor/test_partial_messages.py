# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.hypervisor import partial_messages
from controlplane.hypervisor.partial_messages import PARTIAL_MESSAGES_EXCEEDED, PartialMessages
from controlplane.hypervisor.transport import Transport


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> PartialMessages:
    made = PartialMessages(most=1000)
    monkeypatch.setattr(partial_messages, "PROCESS_WIDE", made)
    return made


@pytest.mark.usefixtures("together")
def test_whoever_holds_most_is_cut_and_whoever_came_last_is_not() -> None:
    small, large, honest = Transport(), Transport(), Transport()
    small.count_received(400, 0.0)
    large.count_received(300, 0.0)
    large.count_received(250, 0.0)
    honest.count_received(100, 0.0)
    assert [item.because for item in (small, large, honest)] == ["", PARTIAL_MESSAGES_EXCEEDED, ""]
    honest.count_received(300, 0.0)
    assert [entry.because for entry in (small, large, honest)] == ["", PARTIAL_MESSAGES_EXCEEDED, ""], (
        "there is room again"
    )


def test_nothing_is_held_of_what_is_whole(together: PartialMessages) -> None:
    """An event is told, or a call has ended, before what it read is counted to its end."""
    transport = Transport()
    for _unused in range(3):
        transport.count_received(600, 0.0)
        transport.message_completed()
        transport.count_received(300, 0.0)
        assert together.total == 0
        with transport.in_use():
            transport.count_received(600, 0.0)
            assert together.total == 600
        transport.count_received(300, 0.0)
        assert together.total == 0
    assert not transport.because


def test_an_ended_connection_holds_nothing(together: PartialMessages) -> None:
    transport = Transport()
    transport.count_received(600, 0.0)
    transport.detach(7)
    assert together.total == 0


def test_what_comes_while_a_connection_is_closed_is_held_by_nobody(together: PartialMessages) -> None:
    """It is counted when the thread that closed it has ended, and so after its end."""
    transport = Transport()
    transport.retire(0.0)
    transport.count_received(600, 0.0)
    assert together.total == 0

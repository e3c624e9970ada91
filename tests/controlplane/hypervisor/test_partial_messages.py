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
    messages = PartialMessages(most=1000)
    monkeypatch.setattr(partial_messages, "PROCESS_WIDE", messages)
    return messages


@pytest.mark.usefixtures("together")
def test_the_largest_connection_is_cut_and_not_the_latest() -> None:
    small, large, honest = Transport(), Transport(), Transport()
    small.count_received(400, 0.0)
    large.count_received(300, 0.0)
    large.count_received(250, 0.0)
    honest.count_received(100, 0.0)
    assert [transport.because for transport in (small, large, honest)] == ["", PARTIAL_MESSAGES_EXCEEDED, ""]
    honest.count_received(300, 0.0)
    assert [entry.because for entry in (small, large, honest)] == ["", PARTIAL_MESSAGES_EXCEEDED, ""], (
        "there is room again"
    )


def test_complete_messages_do_not_count(together: PartialMessages) -> None:
    """An event arrives or a call ends before all of its bytes are counted."""
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


def test_a_closed_connection_does_not_count(together: PartialMessages) -> None:
    transport = Transport()
    transport.count_received(600, 0.0)
    transport.detach(7)
    assert together.total == 0


def test_bytes_received_during_close_do_not_count(together: PartialMessages) -> None:
    """They are counted when the closing thread ends, after the end of the connection."""
    transport = Transport()
    transport.retire(0.0)
    transport.count_received(600, 0.0)
    assert together.total == 0

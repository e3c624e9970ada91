# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import threading

from controlplane.hypervisor.receive_quota import BURST_BYTES, RATE, UNREAD_BYTES, ReadMeter, ReceiveQuota, UnreadLimit


def test_a_receive_quota_is_used_up_and_refills() -> None:
    quota = ReceiveQuota()
    assert quota.take(BURST_BYTES, 0.0)
    assert not quota.take(1, 0.0)
    assert quota.take(RATE, 2.0)
    assert not quota.take(BURST_BYTES + 1, 1e6), "it never holds more than at first"


def test_a_receive_quota_can_be_extended_temporarily() -> None:
    quota = ReceiveQuota()
    with quota.extended(1000):
        assert quota.take(BURST_BYTES + 1000, 0.0)
    assert not quota.take(1, 0.0)
    assert quota.take(BURST_BYTES, 1e6)
    with quota.extended(1000):
        pass
    assert quota.left == 0, "what was not needed is not kept"
    with quota.extended(1000):
        assert not quota.take(1200, 1e6)
    assert quota.left == -200


def test_a_peer_that_reads_nothing_may_send_a_little() -> None:
    unread = UnreadLimit()
    assert unread.take(UNREAD_BYTES, is_full=True)
    assert unread.take(BURST_BYTES, is_full=False), "it has read"
    assert unread.take(UNREAD_BYTES, is_full=True)
    assert not unread.take(1, is_full=True)


def test_the_bytes_that_a_thread_reads_are_counted() -> None:
    meter = ReadMeter(threading.get_native_id())
    meter.since()
    ends = os.pipe()
    os.write(ends[1], b"x" * 5000)
    assert len(os.read(ends[0], 5000)) == 5000
    assert 5000 <= meter.since() < 5200, "and the look itself"
    for end in ends:
        os.close(end)
    meter.close()


def test_an_ended_thread_has_read_nothing() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert ReadMeter(thread.native_id or 0).since() == 0

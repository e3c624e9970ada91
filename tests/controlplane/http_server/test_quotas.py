# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas: a limit for all peers together and a limit for each peer."""

from __future__ import annotations

import pytest

from controlplane.http_server.quotas import BusyError, Quota


def test_a_peer_gets_no_more_than_its_limit() -> None:
    quota = Quota(10, 6)
    assert quota.take("a", 6)
    assert not quota.take("a", 1)
    assert quota.take("b", 4)


def test_all_peers_together_get_no_more_than_the_limit() -> None:
    quota = Quota(10, 6)
    assert quota.take("a", 6)
    assert not quota.take("b", 5)
    assert quota.take("b", 4)


def test_a_refused_amount_is_not_taken() -> None:
    quota = Quota(10, 6)
    assert not quota.take("a", 7)
    assert quota.is_unused
    assert quota.take("a", 6)


def test_a_returned_amount_can_be_taken_again() -> None:
    quota = Quota(2, 2)
    assert quota.take("a", 2)
    quota.give_back("a", 1)
    assert quota.used_by("a") == 1
    assert quota.take("b", 1)


def test_a_reservation_ends_with_an_error_in_its_block() -> None:
    quota = Quota(2, 2)
    with pytest.raises(ZeroDivisionError), quota.reserve("a", 2, "full"):
        raise ZeroDivisionError
    assert quota.is_unused


def test_a_reservation_beyond_the_limit_is_refused_with_its_text() -> None:
    quota = Quota(2, 2)
    with pytest.raises(BusyError, match="full"), quota.reserve("a", 3, "full"):
        raise AssertionError("reserved")
    assert quota.is_unused

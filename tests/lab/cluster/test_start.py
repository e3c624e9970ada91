# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node counts as back."""

from __future__ import annotations

import datetime

import pytest

from lab.cluster.start import is_ready, is_renewed

NOW = datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_node_is_ready_when_it_says_so(status: str, ready: bool) -> None:
    assert is_ready({"status": {"conditions": [{"type": "Ready", "status": status}]}}) is ready


def test_node_without_conditions_is_not_ready() -> None:
    assert not is_ready({})


@pytest.mark.parametrize(
    ("renewed", "news"),
    [("2026-01-01T12:00:00.000001Z", True), ("2026-01-01T11:59:59.999999Z", False), (None, False)],
)
def test_lease_of_a_former_life_is_no_news(renewed: str | None, news: bool) -> None:
    assert is_renewed({"spec": {"renewTime": renewed}}, NOW) is news

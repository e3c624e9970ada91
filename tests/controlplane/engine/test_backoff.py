# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The back-off of a failing key."""

from __future__ import annotations

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.backoff import BackOff

WEB, DB = Key("default", "web"), Key("default", "db")


@pytest.mark.parametrize(
    ("chance", "delays"),
    [(1.0, [0.05, 0.1, 0.2, 0.4]), (0.0, [0.025, 0.05, 0.1, 0.2])],
    ids=["the whole delay", "half of it"],
)
def test_each_failure_doubles_the_delay(chance: float, delays: list[float]) -> None:
    backoff = BackOff(lambda: chance)
    assert [backoff.fail(WEB) for _unused in delays] == pytest.approx(delays)


def test_the_delay_is_capped() -> None:
    backoff = BackOff(lambda: 1.0, cap_seconds=30.0)
    assert max(backoff.fail(WEB) for _unused in range(2000)) == 30.0


def test_success_resets_the_delay_of_that_key_only() -> None:
    backoff = BackOff(lambda: 1.0)
    for key in (WEB, WEB, DB, DB):
        backoff.fail(key)
    backoff.forget(WEB)
    assert (backoff.fail(WEB), backoff.fail(DB)) == (0.05, 0.2)

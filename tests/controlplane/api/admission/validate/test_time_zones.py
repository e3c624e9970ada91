# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings about unknown time zones."""

from __future__ import annotations

import pytest

from controlplane.api.admission.validate import time_zones
from controlplane.api.admission.validate.machine_warnings import warn_of_machine


def warnings(zone: object) -> list[str]:
    return list(warn_of_machine({"domain": {"clock": {"timezone": zone}}}, "spec"))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "EST5EDT", "Etc/GMT+3", "", None, 3])
def test_a_known_time_zone_gets_no_warning(zone: object) -> None:
    assert warnings(zone) == []


@pytest.mark.parametrize("zone", ["Mars/Phobos", "Europe/Berln", "Europe", "UTC+3", "../../etc/passwd"])
def test_an_unknown_time_zone_is_warned_of(zone: str) -> None:
    """QEMU would take it for UTC."""
    (warning,) = warnings(zone)
    assert warning.startswith(f'spec.domain.clock.timezone: "{zone}" is no time zone of the tz database')
    assert warning.endswith("write e.g. Europe/Berlin")


def test_without_time_zones_nobody_is_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_zones, "_is_known", lambda _unused: False)
    assert warnings("Mars/Phobos") == []


@pytest.mark.parametrize("machine", [None, [], {}, {"domain": []}, {"domain": {"clock": "UTC"}}])
def test_a_machine_of_another_shape_gets_no_warning(machine: object) -> None:
    assert list(warn_of_machine(machine, "spec")) == []

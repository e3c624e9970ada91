# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The label: ours is a time, any other a person's."""

from __future__ import annotations

import pytest

from controlplane.virt_controller.quarantine.quarantine_label import parse_label, render_label


def test_a_mark_is_read_as_it_was_written() -> None:
    assert render_label(1_767_225_600.9) == "20260101T000000Z"
    assert parse_label("20260101T000000Z") == 1_767_225_600.0


@pytest.mark.parametrize(
    "value", ["", "true", "maintenance", "20260101T000000", "20260101T000000Zx", "2026101T000000Z", "20261301T000000Z"]
)
def test_what_is_no_time_is_a_persons(value: str) -> None:
    assert parse_label(value) is None

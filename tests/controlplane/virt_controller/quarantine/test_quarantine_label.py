# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quarantine label: ours holds a time, any other value is a user's."""

from __future__ import annotations

import pytest

from controlplane.virt_controller.quarantine.quarantine_label import parse_label, render_label


def test_a_rendered_label_is_parsed_to_the_same_time() -> None:
    assert render_label(1_767_225_600.9) == "20260101T000000Z"
    assert parse_label("20260101T000000Z") == 1_767_225_600.0


@pytest.mark.parametrize(
    "value", ["", "true", "maintenance", "20260101T000000", "20260101T000000Zx", "2026101T000000Z", "20261301T000000Z"]
)
def test_a_value_without_a_time_is_a_users(value: str) -> None:
    assert parse_label(value) is None

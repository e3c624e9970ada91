# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Points in time."""

from __future__ import annotations

import pytest

from controlplane.virt_controller.stamps import parse_stamp, read_stamp, render_stamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2026-01-01T00:00:00Z", 1_767_225_600.0), ("2026-01-01T01:00:00+01:00", 1_767_225_600.0)],
    ids=["UTC", "elsewhere"],
)
def test_a_stamp_is_read(text: str, seconds: float) -> None:
    assert parse_stamp(text) == seconds


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-13-01T00:00:00Z"])
def test_what_is_no_stamp_says_nothing(text: str | None) -> None:
    assert read_stamp(text) is None


def test_a_stamp_is_written_in_whole_seconds() -> None:
    assert render_stamp(1_767_225_600.9) == "2026-01-01T00:00:00Z"

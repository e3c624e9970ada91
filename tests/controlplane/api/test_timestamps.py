# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timestamps of the Kubernetes API."""

from __future__ import annotations

import pytest

from controlplane.api.timestamps import format_timestamp, parse_timestamp, read_timestamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2026-01-01T00:00:00Z", 1_767_225_600.0), ("2026-01-01T01:00:00+01:00", 1_767_225_600.0)],
    ids=["UTC", "another time zone"],
)
def test_a_timestamp_is_parsed(text: str, seconds: float) -> None:
    assert parse_timestamp(text) == seconds


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-13-01T00:00:00Z"])
def test_a_missing_or_malformed_timestamp_is_none(text: str | None) -> None:
    assert read_timestamp(text) is None


def test_a_timestamp_has_whole_seconds() -> None:
    assert format_timestamp(1_767_225_600.9) == "2026-01-01T00:00:00Z"

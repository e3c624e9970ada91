# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that are reached without the proxy."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.proxy import is_exempt


@pytest.mark.parametrize(
    ("host", "no_proxy", "expected"),
    [
        ("a.example.org", ".example.org", True), ("example.org", "example.org", True), ("b.org", "example.org", False),
        ("10.1.2.3", "10.0.0.0/8", True), ("10.1.2.3", "192.168.0.0/16, localhost", False), ("x", "*", True),
        ("notexample.org", "example.org", False), ("x", "", False),
    ],
)  # fmt: skip
def test_exemption(host: str, no_proxy: str, expected: bool) -> None:
    assert is_exempt(host, no_proxy) is expected

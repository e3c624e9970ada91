# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which web pages may open a stream."""

from __future__ import annotations

import pytest

from controlplane.virt_api.streams.origin import is_allowed_origin

HOSTS = ["virt-api.kubevirt.svc", "api.example:6443"]


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        (None, True),
        ("https://api.example:6443", True),
        ("https://API.example:6443", True),
        ("https://api.example", False),
        ("http://localhost:8001", True),
        ("http://127.0.0.1:8001", True),
        ("http://[::1]:8001", True),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://evil.example#localhost", False),
        ("null", False),
        ("", False),
        ("file://localhost", False),
        ("http://[::1", False),
    ],
)
def test_only_the_api_server_and_this_machine_may(origin: str | None, is_allowed: bool) -> None:
    assert is_allowed_origin(origin, HOSTS) is is_allowed


def test_an_unknown_host_matches_no_origin() -> None:
    assert not is_allowed_origin("http://", [""])

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which web pages may open a stream."""

from __future__ import annotations

import pytest

from controlplane.virt_api.streams.origin import is_allowed_origin

HOSTS = ["virt-api.kubevirt.svc", "api.example:6443"]
LISTED = {"https://cloud.example"}


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
        ("https://cloud.example", True),
        ("https://CLOUD.example:443", True),
        ("http://cloud.example", False),
        ("https://cloud.example:8443", False),
        ("https://cloud.example/", False),
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
def test_only_the_api_server_this_machine_and_listed_origins_may(origin: str | None, is_allowed: bool) -> None:
    assert is_allowed_origin(origin, HOSTS, LISTED) is is_allowed


@pytest.mark.parametrize(
    ("fetch_site", "is_allowed"),
    [("same-origin", True), ("same-site", False), ("cross-site", False), ("none", False), ("", False), (None, False)],
)
def test_a_browser_that_compares_the_origins_itself_is_believed(fetch_site: str | None, is_allowed: bool) -> None:
    """A page cannot set Sec-Fetch-Site."""
    assert is_allowed_origin("https://api.example.com", ["virt-api.kubevirt.svc"], (), fetch_site) is is_allowed


def test_an_unknown_host_matches_no_origin() -> None:
    assert not is_allowed_origin("http://", [""])

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of a proxy, and the hosts that bypass it."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.proxy import at, is_exempt, parse, user


@pytest.mark.parametrize(
    ("host", "no_proxy", "expected"),
    [
        ("a.example.org", ".example.org", True), ("example.org", "example.org", True), ("b.org", "example.org", False),
        ("10.1.2.3", "10.0.0.0/8", True), ("10.1.2.3", "192.168.0.0/16, localhost", False), ("x", "*", True),
        ("notexample.org", "example.org", False), ("x", "", False),
    ],
)  # fmt: skip
def test_hosts_that_bypass_the_proxy(host: str, no_proxy: str, expected: bool) -> None:
    assert is_exempt(host, no_proxy) is expected


@pytest.mark.parametrize(
    ("address", "where", "who"),
    [
        ("http://proxy.example:3128", ("proxy.example", 3128), None),
        ("http://proxy.example", ("proxy.example", 80), None),
        ("proxy.example:3128", ("proxy.example", 3128), None),
        ("http://[fd00::1]:8080/", ("fd00::1", 8080), None),
        ("http://jane:p%40ss:w@proxy.example", ("proxy.example", 80), "jane:p@ss:w"),
        ("http://jane@proxy.example", ("proxy.example", 80), "jane:"),
    ],
)
def test_an_address_has_host_and_user(address: str, where: tuple[str, int], who: str | None) -> None:
    assert (at(parse(address)), user(parse(address))) == (where, who)


@pytest.mark.parametrize(
    "address",
    [
        "socks5://u:canary@proxy:1080",
        "https://u:canary@proxy",
        "http://u:canary@proxy:port",
        "http://u:canary@",
        "http://[u:canary",
    ],
)
def test_an_unusable_address_is_refused_without_showing_its_password(address: str) -> None:
    with pytest.raises(BadArgument, match="only HTTP is spoken to a proxy") as caught:
        parse(address)
    assert "canary" not in caught.value.message

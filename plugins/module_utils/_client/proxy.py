# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy's address, its user, and which hosts are reached without it."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, unquote, urlsplit

from .errors import BadArgument

PORT = 80
"""The port of a proxy whose address has none, as in kubectl."""


def parse(address: str) -> SplitResult:
    """Return the parts of a proxy's address. Raises BadArgument, without quoting the password, for an unusable one."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        is_usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or parts.scheme != "http":
        raise BadArgument(
            "proxy: not an address like http://proxy.example.org:3128; only HTTP is spoken to a proxy, not TLS or SOCKS"
        )
    return parts


def at(parts: SplitResult) -> tuple[str, int]:
    """Return host and port of the proxy."""
    return parts.hostname or "", parts.port or PORT


def user(parts: SplitResult) -> str | None:
    """Return user and password from the address, joined by a colon."""
    return None if parts.username is None else f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def is_exempt(host: str, no_proxy: str) -> bool:
    """Tell whether a comma-separated list of hosts, .domains, addresses and CIDRs contains the host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    for entry in (part.strip() for part in no_proxy.split(",")):
        if entry == "*" or (entry and (host == entry or host.endswith("." + entry.lstrip(".")))):
            return True
        if address is not None and entry:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue
    return False

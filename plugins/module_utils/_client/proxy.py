# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are reached without the proxy."""

from __future__ import annotations

import ipaddress


def is_exempt(host: str, no_proxy: str) -> bool:
    """Tell whether a comma-separated list of hosts, .domains, addresses and CIDRs names the host."""
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

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which networks there may be between a Pod and its guest. Pure; admission and the node, which trusts nobody's
admission, ask the same.
"""

from __future__ import annotations

from ipaddress import IPv4Network

LARGEST, SMALLEST = 8, 30
"""Prefix lengths; a longer one has no room for gateway and guest."""


def is_usable(network: IPv4Network) -> bool:
    """Whether a guest can have an address of it that means nothing else to its Pod."""
    means_else = network.is_loopback or network.is_multicast or network.is_link_local or network.is_unspecified
    return LARGEST <= network.prefixlen <= SMALLEST and not means_else

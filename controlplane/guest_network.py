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
MEAN_ELSE = tuple(
    IPv4Network(one) for one in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
)
"""This network, this host, this link, groups, and what is reserved, broadcast among it."""


def is_usable(network: IPv4Network) -> bool:
    """Whether no address of it that a guest can have or reach means something else to its Pod."""
    return LARGEST <= network.prefixlen <= SMALLEST and not any(network.overlaps(one) for one in MEAN_ELSE)

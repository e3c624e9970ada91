# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a Pod's own interface. A value, apart from the code (and its netlink library) that finds it out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodInterface:
    """The Pod's own interface, as the cluster's network made it."""

    addresses: tuple[str, ...]
    """IPv4 first, then global IPv6; without prefix length."""

    mtu: int

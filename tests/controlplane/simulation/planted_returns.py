# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted in what a node does when it comes back."""

from __future__ import annotations

from controlplane.virt_handler.node_recovery.recovery import NodeRecovery


async def asks_nobody(clearing: NodeRecovery) -> bool:
    """Take every launcher for the node's own."""
    clearing._asked_at, clearing._silences = clearing._clock.monotonic(), clearing._heard.silences
    return True

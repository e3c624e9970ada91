# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted in what a node does when it comes back."""

from __future__ import annotations

from controlplane.engine.errors import ApiError
from controlplane.virt_handler.clearing import Clearing
from controlplane.virt_handler.vmi.world import Launcher


async def gone_when_unanswered(clearing: Clearing, launcher: Launcher) -> str:
    """Take a question that was not answered for the answer that there is no such VMI."""
    try:
        return await _why_orphan(clearing, launcher)
    except ApiError:
        return "nobody answers"


_why_orphan = Clearing._why_orphan

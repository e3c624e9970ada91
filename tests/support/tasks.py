# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End the asyncio tasks of a test."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


async def cancel_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end. Raises what it raised before."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

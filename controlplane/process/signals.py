# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run until SIGTERM or SIGINT. No draining and no supervision.

virt-api serves for a while after the signal, and virt-launcher shuts its guest down: they have their own handlers.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def run_until_signal(serve: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run serve(); a signal cancels it, which is no error. Its own exceptions are raised."""
    serving = asyncio.ensure_future(serve())
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends this process if its event loop hangs. virt-node has no port for a probe of the kubelet, and must not get one.

The kubelet restarts the process, which does not affect guests. An exec probe would cost more than all other work of an
idle virt-node; this costs a sleeping thread.
"""

from __future__ import annotations

import asyncio
import faulthandler

HANG_SECONDS = 60.0
"""No callback on the loop takes a tenth of this, even on an overloaded machine."""


async def exit_when_loop_hangs(seconds: float = HANG_SECONDS) -> None:
    """Run until cancelled. If the loop hangs this long, print the tracebacks of all threads and end the process."""
    try:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            await asyncio.sleep(seconds / 3)
    finally:
        faulthandler.cancel_dump_traceback_later()

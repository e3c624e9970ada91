# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End a process whose loop stands still. virt-node has no port that the kubelet could ask, and is not to have one.

The kubelet starts it anew, and no guest notices. To be asked by a program (an exec probe) would cost more than all else
that an idle virt-node does; this is a new thread now and then, which sleeps.
"""

from __future__ import annotations

import asyncio
import faulthandler

STANDS_STILL_SECONDS = 60.0
"""Nothing is done on the loop that takes a tenth of it, on a machine that is hardly there."""


async def end_when_the_loop_stands_still(seconds: float = STANDS_STILL_SECONDS) -> None:
    """Run until cancelled. A loop that has no turn for so long ends the process, which says where each thread is."""
    try:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            await asyncio.sleep(seconds / 3)
    finally:
        faulthandler.cancel_dump_traceback_later()

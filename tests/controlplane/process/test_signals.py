# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import os
import signal

import pytest

from controlplane.process.signals import SIGNALS, run_until_signal


@pytest.mark.parametrize("number", SIGNALS, ids=lambda value: signal.Signals(value).name)
async def test_a_signal_cancels_the_server_and_lets_it_clean_up(number: int) -> None:
    began, cleaned_up = asyncio.Event(), []

    async def serve() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append("goodbye")

    running = asyncio.create_task(run_until_signal(serve))
    await began.wait()
    os.kill(os.getpid(), number)
    async with asyncio.timeout(5):
        await running
    assert cleaned_up == ["goodbye"]


async def test_an_error_of_the_server_is_raised() -> None:
    async def serve() -> None:
        raise OSError("the socket is in use")

    with pytest.raises(OSError, match="in use"):
        await run_until_signal(serve)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocking calls in threads, each with a deadline: no other file knows that libvirt blocks.

A thread per call and no pool: a call stuck in one VM's libvirtd then costs that VM's caller its deadline and nobody
else a worker, and an idle connection costs no thread. Calls are few (about ten per start); a thread takes 0.1 ms.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import libvirt

from controlplane.hypervisor.errors import TimedOut, translate

Result = TypeVar("Result")

DEADLINE_SECONDS = 10.0


async def call(
    doing: str, function: Callable[..., Result], *arguments: Any, deadline_seconds: float = DEADLINE_SECONDS
) -> Result:
    """Run a blocking libvirt call and return its result.

    doing: the attempt in words, for the error. Raises HypervisorError; TimedOut after the deadline, while the
    thread goes on: what it comes to then is dropped, its effect unknown.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if outcome.done():  # the deadline or a cancellation came first
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result: Result | None = None
        failure: BaseException | None = None
        try:
            result = function(*arguments)
        except BaseException as error:  # carried over to the caller, whatever it is
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=work, name=f"libvirt: {doing}", daemon=True).start()
    try:
        async with asyncio.timeout(deadline_seconds):
            return await outcome
    except TimeoutError as error:
        raise TimedOut(f"cannot {doing}: no answer within {deadline_seconds:g} s") from error
    except libvirt.libvirtError as error:
        raise translate(doing, error) from error

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the set-up inside a Pod's network namespace. A thread enters it and ends there; it never comes back.

So no other work of this process can run in a Pod's namespace by mistake, whatever fails.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from controlplane.node_link.messages import Masquerade, PodInterface
from controlplane.virt_node.network import links, masquerade, nft

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000
DEADLINE_SECONDS = 10.0


async def run_in_namespace(namespace: AbstractContextManager[int], work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own inside the namespace; what it raises is raised here.

    namespace: entered in that thread, because opening it may block on the launcher's side. TimeoutError after
    DEADLINE_SECONDS; the thread is then left to itself.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def report(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)  # type: ignore[arg-type]

    def enter() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            with namespace as fd:
                _setns(fd)
                result = work()
        except BaseException as error:  # carried over to the caller, whatever it is
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(report, result, failure)

    threading.Thread(target=enter, name="pod-network", daemon=True).start()
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await outcome


async def set_up(namespace: AbstractContextManager[int], wanted: Masquerade) -> PodInterface:
    """Make the Pod's network ready for its guest, or leave it as it is when it is already."""

    def work() -> PodInterface:
        pod = links.build(wanted.network.gateway_interface)
        nft.run(masquerade.render_rules(wanted))
        return pod

    return await run_in_namespace(namespace, work)


def _setns(namespace_fd: int) -> None:
    # os.setns exists from Python 3.12 on.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace_fd, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter the Pod's network namespace: {os.strerror(number)}")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a file of a launcher from an untrusted descriptor.

A read from a regular file can block for ever (/proc/kmsg, a file on a network), and cannot be cancelled. So each file
is read in its own thread, with a deadline, and the number of threads is limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from controlplane.links.node.descriptor_closer import DescriptorCloser
from controlplane.process import threads
from controlplane.virt_handler.launchers.ports import NodeError

AT_ONCE = 16
"""Limit of threads. A thread that blocks counts until it ends."""
_SECONDS = 10.0


class FileReader:
    """Reads the files of one name, of all launchers of the node."""

    def __init__(self, name: str, read: Callable[[int], bytes], seconds: float = _SECONDS) -> None:
        """read: reads a descriptor and closes it; it may block. seconds: timeout of each file, queueing included."""
        self._name = name
        self._read = read
        self._seconds = seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._closer = DescriptorCloser()

    async def read(self, descriptor: int) -> bytes:
        """Read a file. The descriptor is closed in any case. NodeError."""
        try:
            async with asyncio.timeout(self._seconds):
                return await (await self._begin(descriptor))
        except TimeoutError as error:
            raise NodeError(f"{self._name} was not read within {self._seconds:g} s") from error

    async def _begin(self, descriptor: int) -> asyncio.Future[bytes]:
        outcome: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def settle(data: bytes | None, error: BaseException | None) -> None:
            self._slots.release()
            if outcome.done():
                return  # the caller has given up
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(data or b"")

        try:
            await self._slots.acquire()
        except BaseException:  # cancelled while all threads are busy
            self._closer.add(descriptor)
            raise
        try:
            threads.start_thread(self._name, lambda: self._read(descriptor), settle)
        except RuntimeError as error:
            self._slots.release()
            self._closer.add(descriptor)
            raise NodeError(f"cannot start a thread to read {self._name}") from error
        return outcome

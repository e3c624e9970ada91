# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the bytes of a launcher's report, or of another file, from an untrusted descriptor. It does not parse them.

A read from a regular file can block for ever (/proc/kmsg, a file on a network), and cannot be cancelled. So each report
is read in its own thread, with a deadline, and the number of threads is limited.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable

from controlplane.api.launch_plan import REPORT_LIMIT_BYTES
from controlplane.domain import layout
from controlplane.links.node.descriptor_closer import DescriptorCloser
from controlplane.process import threads
from controlplane.virt_handler.launchers.ports import NodeError, Refused

AT_ONCE = 16
"""Limit of threads. A thread that blocks counts until it ends."""
_SECONDS = 10.0


class Reports:
    """Reads the reports of one node."""

    def __init__(
        self, read: Callable[[int], bytes] | None = None, seconds: float = _SECONDS, name: str = layout.REPORT
    ) -> None:
        """read: reads a descriptor and closes it; it may block. seconds: timeout of each report, queueing included.

        name: of the file, for errors.
        """
        self._name = name
        self._read = read_whole if read is None else read
        self._seconds = seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._closer = DescriptorCloser()

    async def read(self, descriptor: int) -> bytes:
        """Read a report up to the size limit. The descriptor is closed in any case. NodeError."""
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
            threads.start_thread("report", lambda: self._read(descriptor), settle)
        except RuntimeError as error:
            self._slots.release()
            self._closer.add(descriptor)
            raise NodeError(f"cannot start a thread to read {self._name}") from error
        return outcome


def read_whole(descriptor: int) -> bytes:
    """Read up to the size limit and close. NodeError; Refused if it is not a regular file, or too long.

    A Python file object is only created after the check that it is a regular file.
    """
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused("the descriptor from virt-node is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(REPORT_LIMIT_BYTES + 1)
    except OSError as error:
        raise NodeError(f"{layout.REPORT} cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if len(data) > REPORT_LIMIT_BYTES:
        raise Refused(f"{layout.REPORT} has more than {REPORT_LIMIT_BYTES} bytes")
    return data

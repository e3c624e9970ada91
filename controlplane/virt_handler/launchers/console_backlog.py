# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a console's log: read from an untrusted descriptor, and joined with what the console prints meanwhile."""

from __future__ import annotations

import os
import stat

from controlplane.domain.layout import CONSOLE_BACKLOG_BYTES, SERIAL_LOG_NAME
from controlplane.virt_handler.launchers.ports import NodeError, Refused


def read_backlog(descriptor: int) -> bytes:
    """Read the last bytes of a log and close it. NodeError; Refused if it is not a regular file. It may block.

    A longer log begins with a whole line. A launcher of an older release has freed bytes that read as zeros.
    """
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused("the descriptor from virt-node is not a regular file")
        start = max(0, status.st_size - CONSOLE_BACKLOG_BYTES)
        data = os.pread(descriptor, CONSOLE_BACKLOG_BYTES, start).lstrip(b"\0")
    except OSError as error:
        raise NodeError(f"{SERIAL_LOG_NAME} cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return data[data.find(b"\n") + 1 :] if start else data


def without_repetition(backlog: bytes, live: bytes) -> bytes:
    """Return the part of `live` that is not at the end of the backlog yet.

    live: what a connection that was made before the log was read had received afterwards. QEMU writes each byte to
    the connection first, and then to the log: what the two share are the last bytes of the log, the first of `live`.
    """
    # Knuth, Morris and Pratt: `shared` is how much of the beginning of `live` the log has ended with so far.
    borders = [0] * (len(live) + 1)
    shared = 0
    for at in range(1, len(live)):
        shared = _extend(live, borders, shared, live[at])
        borders[at + 1] = shared
    shared = 0
    for byte in backlog[-len(live) :] if live else b"":
        shared = _extend(live, borders, shared, byte)
    return live[shared:]


def _extend(live: bytes, borders: list[int], shared: int, byte: int) -> int:
    """Return the length of the longest beginning of `live` that ends here, one byte later."""
    while shared and (shared == len(live) or live[shared] != byte):
        shared = borders[shared]
    return shared + (live[shared] == byte)

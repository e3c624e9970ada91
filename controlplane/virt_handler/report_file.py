# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a launcher's report from a descriptor that came from outside. Not what is in it; blocking, for a thread."""

from __future__ import annotations

import os
import stat

from controlplane.api.launch_plan import REPORT_LIMIT_BYTES
from controlplane.domain import layout
from controlplane.virt_handler.launchers.ports import NodeError, Refused


def read_whole(descriptor: int) -> bytes:
    """Read up to the limit and close. NodeError; Refused when it is no file, or longer.

    A file of Python's own is made of what is known to be one only.
    """
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused("virt-node gave something else than a file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(REPORT_LIMIT_BYTES + 1)
    except OSError as error:
        raise NodeError(f"{layout.REPORT} cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if len(data) > REPORT_LIMIT_BYTES:
        raise Refused(f"{layout.REPORT} has more than {REPORT_LIMIT_BYTES} bytes")
    return data

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file with a launcher's report: read from an untrusted descriptor, and not parsed."""

from __future__ import annotations

import os
import stat

from controlplane.api.launch_plan import REPORT_LIMIT_BYTES
from controlplane.domain import layout
from controlplane.virt_handler.launchers.ports import NodeError, Refused


def read_report(descriptor: int) -> bytes:
    """Read a report and close it. NodeError; Refused if it is not a regular file, or too long. It may block.

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

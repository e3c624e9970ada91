# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Unix socket that accepts no passed descriptors: closing a received descriptor may block."""

from __future__ import annotations

import socket
from contextlib import suppress

_SO_PASSRIGHTS = 83
"""From asm-generic/socket.h; correct on all supported processors."""


def refuse_descriptors(receiver: socket.socket) -> bool:
    """Make the kernel refuse descriptors sent here, and on accepted connections (EPERM). False: before Linux 6.16."""
    with suppress(OSError):
        receiver.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
        return True
    return False

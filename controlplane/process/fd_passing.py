# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Unix socket that takes no descriptors: whoever receives what is sent along has to close it, which may take long."""

from __future__ import annotations

import socket
from contextlib import suppress

_SO_PASSRIGHTS = 83
"""Of asm-generic/socket.h; the processors that number their options otherwise are none that we run on."""


def refuse_descriptors(receiver: socket.socket) -> bool:
    """Have the kernel refuse what is sent along here, and to whom this lets in (EPERM). False: it is before 6.16."""
    with suppress(OSError):
        receiver.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
        return True
    return False

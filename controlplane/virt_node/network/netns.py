# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets up the network inside a Pod's network namespace. The thread that enters it does not leave it, and must end.

workers.py uses each thread once, so no other work can run in a Pod's namespace by mistake.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_node.network import links, masquerade, nft

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000


def run_in_namespace(namespace: AbstractContextManager[int], work: Callable[[], T]) -> T:
    """Enter the namespace permanently and run `work` there. Raises the exceptions of both."""
    with namespace as fd:
        _setns(fd)
        return work()


def set_up(namespace: AbstractContextManager[int], wanted: Masquerade) -> PodInterface:
    """Set up what is missing of the Pod's network for its guest. The thread must end afterwards."""

    def work() -> PodInterface:
        pod = links.build(wanted.network.gateway_interface)
        nft.keep(f"ip {masquerade.TABLE}", masquerade.render_rules(wanted))
        return pod

    return run_in_namespace(namespace, work)


def _setns(namespace_fd: int) -> None:
    # os.setns needs Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace_fd, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter the Pod's network namespace: {os.strerror(number)}")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the set-up inside a Pod's network namespace. The thread that enters it never comes back: it has to end there.

So no other work of this process can run in a Pod's namespace by mistake, whatever fails: workers.py gives each piece of
work a thread of its own.
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
    """Enter the namespace for good and run `work` there; what opening it or the work raises is raised."""
    with namespace as fd:
        _setns(fd)
        return work()


def set_up(namespace: AbstractContextManager[int], wanted: Masquerade) -> PodInterface:
    """Make the Pod's network ready for its guest, or leave it as it is when it is already. The thread is lost."""

    def work() -> PodInterface:
        pod = links.build(wanted.network.gateway_interface)
        nft.keep(f"ip {masquerade.TABLE}", masquerade.render_rules(wanted))
        return pod

    return run_in_namespace(namespace, work)


def _setns(namespace_fd: int) -> None:
    # os.setns exists from Python 3.12 on.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace_fd, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter the Pod's network namespace: {os.strerror(number)}")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many launchers at once leave no more memory behind than one.

The test runs in a separate process with the environment that the role gives virt-node: the allocator depends on it.
"""

from __future__ import annotations

import pytest

from tests.controlplane.as_deployed import RESIDENT, run_as

pytestmark = [pytest.mark.root, pytest.mark.nightly]  # network namespaces

PROGRAM = f"""
{RESIDENT}
import ctypes, threading
from controlplane.links.node.messages import Masquerade
from controlplane.virt_node.network import masquerade, nft

RULES = masquerade.render_rules(Masquerade("10.0.2.0/24", ()))
libc = ctypes.CDLL(None)


def set_up(barrier):
    libc.unshare(0x40000000)
    barrier.wait()
    nft.run(RULES)


def at_once(count):
    barrier = threading.Barrier(count)
    threads = [threading.Thread(target=set_up, args=(barrier,)) for _unused in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


at_once(1)
first = resident()
for _unused in range(3):
    at_once(16)
print(resident() - first)
"""


def test_networks_that_are_set_up_at_once_leave_no_memory_behind() -> None:
    """With a heap for each thread it would be 20 MiB, because no heap is returned."""
    assert int(run_as("virt-node", PROGRAM)) < 4 << 10  # KiB

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a process begins and ends, whichever it is."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_BY_MAINS = ("tests/controlplane/test_mains.py",)

_MANY = tuple(
    Guard(
        file=f"controlplane/{process}/__main__.py",
        line="        allow_many()\n",
        without="",
        because=because,
        tests=_BY_MAINS,
    )
    for process, because in (
        ("virt_api", "A few hundred peers would take the descriptors that virt-api needs to read its objects."),
        ("virt_controller", "A few hundred peers would take the descriptors that virt-controller writes over."),
        ("virt_handler", "With a few hundred launchers there would be no descriptor left for one more."),
        ("virt_node", "With a few hundred launchers whose sockets are waited for there would be no descriptor left."),
    )
)

GUARDS: tuple[Guard, ...] = (
    *_MANY,
    Guard(
        file="controlplane/until_told.py",
        line="        loop.add_signal_handler(number, serving.cancel)\n",
        without="        loop.add_signal_handler(number, loop.stop)\n",
        because="A process that is told to end must let go of what it holds: its Lease, its node, its listeners.",
        tests=("tests/controlplane/test_until_told.py",),
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which members of a set stay, and how many are missing."""

from __future__ import annotations

from tests.controlplane.virt_controller.replicaset.stage import a_member, a_set, a_world

STAYING, GOING, UNSELECTED = a_member("a"), a_member("b", deleting=True), a_member("c", app="db")
SENT = a_member("d")


def test_each_member_is_going_selected_or_unselected() -> None:
    world = a_world(a_set(3), STAYING, GOING, UNSELECTED, SENT, deletes_sent=frozenset({SENT.metadata.uid}))
    assert (world.going, world.selected, world.unselected) == ((GOING, SENT), (STAYING,), (UNSELECTED,))
    assert world.missing == 2
    assert a_world(a_set(1), STAYING, SENT).missing == -1

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes with a quarantine label."""

from __future__ import annotations

from controlplane.api.objects.resources import NODE, Key
from controlplane.virt_controller.quarantine.quarantined_nodes import QuarantinedNodes
from tests.controlplane.virt_controller.small_world import SmallWorld

LABEL = "virtops.kubevirt/quarantined"


def test_each_node_is_quarantined_and_released_separately() -> None:
    world = SmallWorld()
    for name in ("a", "b", "c"):
        world.store.create(NODE, "", {"metadata": {"name": name, "labels": {LABEL: "maintenance"}}, "spec": {}})
    marked = QuarantinedNodes(world.overlays[NODE])
    world.start()
    assert marked() == {"a", "b", "c"}

    world.store.patch(NODE, Key("", "a"), {"metadata": {"labels": {LABEL: None}}})
    world.catch_up()
    assert marked() == {"b", "c"}

    world.store.delete(NODE, Key("", "b"))
    world.catch_up()
    assert marked() == {"c"}

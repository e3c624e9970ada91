# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes the update waits for before it migrates instances."""

from __future__ import annotations

import pytest
from kubevirt_api.names import CONTROL_PLANE_IMAGE, SCHEDULABLE

from controlplane.api.objects.resources import NODE, Key
from controlplane.virt_controller.workload_update.handler_rollout import HandlerRollout
from tests.support.clock import SimulatedClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import Json, Store

OURS = "registry/control-plane:2 sha256:1"
ONE = Key("", "node-1")


def a_node(image: str | None, takes_machines: bool | None = True) -> Json:
    labels = {} if takes_machines is None else {SCHEDULABLE: "true" if takes_machines else "false"}
    notes = {} if image is None else {CONTROL_PLANE_IMAGE: image}
    return {"metadata": {"name": "node-1", "labels": labels, "annotations": notes}, "spec": {}}


class Rolling:
    def __init__(self, *nodes: Json, image: str = OURS) -> None:
        self.store = Store(SimulatedClock(), (NODE,))
        self.cache = LaggingCache(self.store, NODE)
        self.rollout = HandlerRollout(self.cache, image)
        self.enqueued = 0
        for node in nodes:
            self.store.create(NODE, "", node)
        self.cache.start()
        self.rollout.enqueue_by(self.enqueue)

    def enqueue(self) -> None:
        self.enqueued += 1

    def write(self, node: Json) -> None:
        self.store.patch(NODE, ONE, node)
        self.catch_up()

    def catch_up(self) -> None:
        while self.cache.is_behind:
            self.cache.advance()


@pytest.mark.parametrize(
    ("node", "outdated_nodes", "has_come"),
    [
        (a_node(OURS), (), True),
        (a_node("registry/control-plane:1 sha256:1"), ("node-1",), False),
        (a_node("registry/control-plane:2 sha256:2"), ("node-1",), False),
        (a_node(None), ("node-1",), False),
        (a_node(None, takes_machines=False), (), False),
        (a_node(None, takes_machines=None), (), False),
        (a_node(OURS, takes_machines=False), (), True),
    ],
    ids=[
        *("ours", "another tag", "another build", "one that does not say so", "one that is off"),
        *("one that never had a virt-handler", "ours takes none"),
    ],
)
def test_schedulable_nodes_with_another_image_are_waited_for(
    node: Json, outdated_nodes: tuple[str, ...], has_come: bool
) -> None:
    rollout = Rolling(node).rollout
    assert (rollout.outdated_nodes, rollout.has_reached("node-1")) == (outdated_nodes, has_come)


def test_a_control_plane_without_a_known_image_waits_for_no_node() -> None:
    assert Rolling(a_node(None), image="").rollout.outdated_nodes == ()


def test_the_callback_runs_when_the_result_changes() -> None:
    rolling = Rolling(a_node("another"))
    rolling.write({"metadata": {"labels": {"zone": "a"}}})
    assert rolling.enqueued == 0
    rolling.write({"metadata": {"labels": {SCHEDULABLE: "false"}}})
    rolling.write({"metadata": {"annotations": {CONTROL_PLANE_IMAGE: OURS}}})
    assert rolling.enqueued == 2


def test_a_deleted_node_is_not_waited_for() -> None:
    rolling = Rolling(a_node("another"))
    rolling.store.delete(NODE, ONE)
    rolling.catch_up()
    assert rolling.rollout.outdated_nodes == ()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api.objects.lease import Lease, LeaseSpec
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.node import Node
from controlplane.virt_controller.node.decide import LONGEST_SECONDS, USUAL_SECONDS, decide, duration_seconds
from controlplane.virt_controller.node.world import MarkUnschedulable, World

LEASE = Lease(spec=LeaseSpec(holder_identity="pod", lease_duration_seconds=40, renew_time="x"))


def a_world(label: str | None = "true", lease: Lease | None = LEASE, unrenewed_for: float = 0.0) -> World:
    labels = {} if label is None else {"kubevirt.io/schedulable": label}
    return World(node=Node(metadata=ObjectMeta(name="node-1", labels=labels)), lease=lease, unrenewed_for=unrenewed_for)


@pytest.mark.parametrize("unrenewed_for", [0.0, 39.9])
def test_nothing_is_concluded_before_a_whole_lease_duration_was_watched(unrenewed_for: float) -> None:
    plan = decide(a_world(unrenewed_for=unrenewed_for))

    assert plan.steps == ()
    assert plan.requeue_after == pytest.approx(40 - unrenewed_for)


@pytest.mark.parametrize("lease", [LEASE, None], ids=["not renewed", "none"])
def test_a_node_with_a_silent_virt_handler_becomes_unschedulable(lease: Lease | None) -> None:
    (action,) = decide(a_world(lease=lease, unrenewed_for=40.0)).steps

    assert isinstance(action, MarkUnschedulable)
    assert "virt-handler is silent" in action.because
    assert "40 s" in action.because


@pytest.mark.parametrize("label", [None, "false"])
def test_an_unschedulable_node_stays_unchanged(label: str | None) -> None:
    plan = decide(a_world(label, unrenewed_for=1e9))

    assert (plan.steps, plan.requeue_after) == ((), None)


@pytest.mark.parametrize(
    ("written", "expected"),
    [(40, 40), (1, 1), (0, USUAL_SECONDS), (-5, USUAL_SECONDS), (2147483647, LONGEST_SECONDS)],
)
def test_a_lease_duration_is_limited(written: int, expected: int) -> None:
    """A Lease with a duration of 68 years must not keep a dead node schedulable."""
    assert duration_seconds(Lease(spec=LeaseSpec(lease_duration_seconds=written))) == expected
    assert duration_seconds(None) == USUAL_SECONDS

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target's part in a migration, as tables: its actions and its status."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.engine.errors import Invalid
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.virt_handler.incoming.decide import decide
from controlplane.virt_handler.incoming.ports import NoMigrationAddress
from controlplane.virt_handler.incoming.status import TRIES, derive_status
from controlplane.virt_handler.incoming.world import Action, CloseTunnel, OpenTunnel, TunnelAddress, World
from controlplane.virt_handler.vmi.world import Destroy, Dial, FailedOperation, Launcher, LauncherStatus, PrepareNetwork
from tests.controlplane.virt_handler.builders import ETH0, NODE, NOW, OTHER, RUNNING, a_launcher, a_pod, observed, seen
from tests.controlplane.virt_handler.migrating import (
    BEGUN,
    BY_MIGRATION,
    MIGRATION,
    TARGET_POD,
    WHOLE,
    begun,
    come,
    migrating,
    ready,
)

TUNNEL = TunnelAddress("10.244.1.9", 4711)
PREPARE = PrepareNetwork(TARGET_POD, "a guest migrates to its launcher")
DIAL = Dial(TARGET_POD, "a guest migrates to its launcher")
OPEN = OpenTunnel(MIGRATION, "a guest migrates to this node")
CLOSE = CloseTunnel(MIGRATION, "its migration is over")
END = Destroy(TARGET_POD, "its migration has failed")
OFF = State(Life.SHUT_OFF, "destroyed")


def target(state: State | None = None, **fields: Any) -> LauncherStatus:
    """Return the status of a connected launcher."""
    mine = None if state is None else observed(pod_uid=fields.pop("pod_uid", TARGET_POD))
    return seen(state, **{"observed": mine, **fields})


def launcher(status: LauncherStatus, **fields: Any) -> Launcher:
    return a_launcher(status, fields.pop("pod", None) or a_pod(TARGET_POD), **fields)


def world(
    vmi: VirtualMachineInstance | None,
    launcher: Launcher | None = None,
    *,
    tunnel: TunnelAddress | None = None,
    **fields: Any,
) -> World:
    is_open = frozenset({MIGRATION}) if tunnel is not None else frozenset()
    inputs: dict[str, Any] = {"open_tunnels": is_open, "now": NOW, "monotonic": 1000.0, **fields}
    return World(node=OTHER, vmi=vmi, launcher=launcher, tunnel=tunnel, **inputs)


FRESH = LauncherStatus(is_here=True)
SET_UP = LauncherStatus(is_here=True, is_network_ready=True, interface=ETH0)
DIALLED = LauncherStatus(is_here=True, is_network_ready=True, is_admitted=True)
FAILED = {"failed": True, "completed": True}

ROWS: dict[str, tuple[World, Plan[Action]]] = {
    "no launcher": (world(migrating()), Plan()),
    "a launcher without a socket": (world(migrating(), launcher(LauncherStatus())), Plan((OPEN,))),
    "a launcher": (world(migrating(), launcher(FRESH)), Plan((PREPARE, OPEN))),
    "a launcher and a tunnel": (world(migrating(), launcher(FRESH), tunnel=TUNNEL), Plan((PREPARE,))),
    "a finished launcher": (world(migrating(), launcher(FRESH, pod=a_pod(TARGET_POD, phase="Failed"))), Plan()),
    "a terminating launcher": (world(migrating(), launcher(FRESH, pod=a_pod(TARGET_POD, deleting=True))), Plan()),
    "a removed launcher": (world(migrating(), launcher(FRESH, gone=True)), Plan()),
    "a network is being set up": (world(migrating(), launcher(FRESH, operation="prepare the network")), Plan((OPEN,))),
    "network setup failed": (
        world(
            migrating(), launcher(FRESH, failed_operation=FailedOperation("no", is_refusal=True, at=1000.0, count=2))
        ),
        Plan((OPEN,), requeue_after=0.2),
    ),
    "a network": (world(migrating(), launcher(SET_UP)), Plan((DIAL, OPEN))),
    "a network and a tunnel": (world(migrating(), launcher(SET_UP), tunnel=TUNNEL), Plan((DIAL,))),
    "dialled": (
        world(migrating(), launcher(LauncherStatus(is_here=True, is_network_ready=True, is_admitted=True))),
        Plan((OPEN,)),
    ),
    "in contact": (world(migrating(), launcher(target())), Plan((OPEN,))),
    "a tunnel": (world(ready(), launcher(target()), tunnel=TUNNEL), Plan()),
    "on its way": (world(begun(), launcher(target(BY_MIGRATION)), tunnel=TUNNEL), Plan()),
    "complete, not committed": (world(begun(), launcher(target(WHOLE)), tunnel=TUNNEL), Plan()),
    "moved, not committed": (world(begun(completed=True), launcher(target(RUNNING)), tunnel=TUNNEL), Plan((CLOSE,))),
    "moved, no tunnel": (world(begun(completed=True), launcher(target(RUNNING))), Plan()),
    "committed": (world(come(), launcher(target(RUNNING)), tunnel=TUNNEL), Plan((CLOSE,))),
    "committed, no tunnel": (world(come(), launcher(target(RUNNING))), Plan()),
    "failed": (world(begun(**FAILED), launcher(target()), tunnel=TUNNEL), Plan((CLOSE,))),
    "failed, its guest is here": (world(begun(**FAILED), launcher(target(WHOLE))), Plan((END,), 10.0)),
    "failed, its guest was destroyed a moment ago": (
        world(begun(**FAILED), launcher(target(WHOLE, destroy_asked_at=997.0))),
        Plan(requeue_after=7.0),
    ),
    "failed, its guest has ended": (world(begun(**FAILED), launcher(target(OFF))), Plan()),
    "failed, and this Pod has a later grant": (
        world(begun(**FAILED, owner=OTHER, pods=(TARGET_POD,)), launcher(target(RUNNING))),
        Plan(),
    ),
    "another migration by now": (
        world(migrating(migrationUid="other"), launcher(target()), tunnel=TUNNEL),
        Plan((CLOSE,)),
    ),
    "to another node by now": (world(migrating(targetNode=NODE), launcher(target()), tunnel=TUNNEL), Plan((CLOSE,))),
    "gone": (world(None, tunnel=TUNNEL), Plan((CLOSE,))),
    "gone, no tunnel": (world(None), Plan()),
}


@pytest.mark.parametrize(("before", "plan"), ROWS.values(), ids=ROWS)
def test_the_target_takes_the_next_step(before: World, plan: Plan[Action]) -> None:
    assert decide(before) == plan


ADDRESS = {"target_node_address": "10.244.1.9", "target_direct_migration_node_ports": {"4711": 0}}
REFUSALS = FailedOperation("no tap", is_refusal=True, at=1000.0, count=TRIES + 1)
REPORTS: dict[str, tuple[World, dict[str, Any] | None]] = {
    "no tunnel": (world(migrating(), launcher(target())), None),
    "a tunnel": (world(migrating(), launcher(target()), tunnel=TUNNEL), ADDRESS),
    "a tunnel, not connected yet": (world(migrating(), launcher(SET_UP), tunnel=TUNNEL), None),
    "reported": (world(ready(), launcher(target()), tunnel=TUNNEL), None),
    "another tunnel, of another process": (
        world(ready(), launcher(target()), tunnel=TunnelAddress("10.244.1.8", 5000)),
        {"target_node_address": "10.244.1.8", "target_direct_migration_node_ports": {"5000": 0}},
    ),
    "another tunnel, and it has begun": (
        world(begun(), launcher(target()), tunnel=TunnelAddress("10.244.1.8", 5000)),
        None,
    ),
    "on its way": (
        world(begun(), launcher(target(BY_MIGRATION)), tunnel=TUNNEL),
        {"target_node_domain_detected": True, "target_node_domain_ready_timestamp": None},
    ),
    "complete, not resumed": (
        world(begun(targetNodeDomainDetected=True), launcher(target(WHOLE)), tunnel=TUNNEL),
        None,
    ),
    "running": (
        world(begun(), launcher(target(RUNNING)), tunnel=TUNNEL),
        {"target_node_domain_ready_timestamp": "2023-11-14T22:13:20Z"},
    ),
    "running, reported": (
        world(begun(targetNodeDomainDetected=True, targetNodeDomainReadyTimestamp=BEGUN), launcher(target(RUNNING))),
        None,
    ),
    "a foreign domain": (world(begun(), launcher(target(WHOLE, pod_uid="other"))), None),
    "not connected": (world(begun(), launcher(target(WHOLE, is_connected=False))), None),
    "no network, for good": (
        world(migrating(), launcher(FRESH, failed_operation=REFUSALS)),
        {"failed": True, "completed": True, "failure_reason": "the target cannot be prepared: no tap"},
    ),
    "no network, and it has begun": (world(begun(), launcher(FRESH, failed_operation=REFUSALS)), None),
    "moved": (world(begun(completed=True), launcher(target(RUNNING)), tunnel=TUNNEL), None),
    "failed": (world(begun(**FAILED), launcher(target()), tunnel=TUNNEL), None),
    "committed": (world(come(), launcher(target(RUNNING)), tunnel=TUNNEL), None),
    "gone": (world(None, tunnel=TUNNEL), None),
}


NOWHERE: RefusedStep[Action] = RefusedStep(OPEN, NoMigrationAddress("no address on migration0"))


def test_a_node_without_a_migration_address_fails_the_migration_before_it_starts() -> None:
    here = launcher(target())
    status = derive_status(world(migrating(), here), NOWHERE)
    moved = None if status is None else status.migration_state
    assert moved is not None
    assert (moved.failed, moved.completed) == (True, True)
    assert moved.failure_reason == "the target cannot be prepared: no address on migration0"
    assert moved.end_timestamp == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize(
    ("vmi", "problem"),
    [
        (migrating(), RefusedStep(OPEN, Invalid("no certificate"))),
        (migrating(), RefusedStep(DIAL, NoMigrationAddress("no address on migration0"))),
        (begun(), NOWHERE),
    ],
    ids=["temporary", "another step", "begun"],
)
def test_no_other_refused_step_fails_a_migration(vmi: VirtualMachineInstance, problem: RefusedStep[Action]) -> None:
    assert derive_status(world(vmi, launcher(target())), problem) is None


@pytest.mark.parametrize(("before", "expected"), REPORTS.values(), ids=REPORTS)
def test_the_target_reports_its_status(before: World, expected: dict[str, Any] | None) -> None:
    status = derive_status(before)
    if expected is None:
        assert status is None
        return
    assert status is not None
    assert status.migration_state is not None
    assert {name: getattr(status.migration_state, name) for name in expected} == expected

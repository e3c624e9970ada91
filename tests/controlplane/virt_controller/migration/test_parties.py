# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each party of a migration fails in each phase: the outcome for the guest and for the migration.

One row for each cell that involves virt-controller. Both virt-handlers are simulated and do their part.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key
from controlplane.engine.errors import Unavailable
from tests.controlplane.virt_controller.migration.stage import Stage

PHASES = ("Scheduling", "PreparingTarget", "TargetReady", "Running", "ready", "Succeeded")
HERE, THERE, LOST, GONE = "Running on node-1", "Running on node-2", "Failed on node-1", "Failed on node-2"


def leader(stage: Stage) -> None:
    """A new leader without controller state takes over."""
    stage.reconciler, stage.vmi_reconciler, stage.evacuation, stage.orphan = stage.another()


def source_daemon(stage: Stage) -> None:
    """The source's virt-handler restarts: it stops sending, and reports the failure afterwards."""
    if stage.state.get("startTimestamp") and not stage.state.get("completed"):
        stage.fail("virt-handler of the source ended")


def source_launcher(stage: Stage) -> None:
    stage.end_pod(stage.source)


def target_launcher(stage: Stage) -> None:
    stage.end_pod(stage.target)


def api_server(stage: Stage) -> None:
    """It does not respond for a while."""
    for kind in ("Pod", "VirtualMachineInstance", "VirtualMachineInstanceMigration"):
        for verb in ("get", "create", "delete", "patch", "patch status of"):
            stage.direct.refusals[f"{verb} {kind}"] = Unavailable("no answer")


def migration_deleted(stage: Stage) -> None:
    stage.cancel()


def second_migration(stage: Stage) -> None:
    stage.clock.advance(5)
    stage.migrate("second")


F, S = "Failed", "Succeeded"
TABLE: dict[Callable[[Stage], None], tuple[tuple[str, str], ...]] = {
    leader: tuple((THERE, S) for _unused in PHASES),
    api_server: tuple((THERE, S) for _unused in PHASES),
    source_daemon: ((THERE, S), (THERE, S), (THERE, S), (HERE, F), (HERE, F), (THERE, S)),
    source_launcher: ((LOST, F), (LOST, F), (LOST, F), (THERE, S), (THERE, S), (THERE, S)),
    target_launcher: ((HERE, F), (HERE, F), (HERE, F), (HERE, F), (HERE, F), (GONE, S)),
    migration_deleted: (
        (HERE, "gone"),
        (HERE, "gone"),
        (HERE, "gone"),
        (HERE, "gone"),
        (HERE, "gone"),
        (THERE, "gone"),
    ),
    second_migration: tuple((THERE, S) for _unused in PHASES),
}
CELLS = [(party, phase, *TABLE[party][at]) for party in TABLE for at, phase in enumerate(PHASES)]


async def go_on(stage: Stage, phase: str) -> None:
    """Let the remaining parties do the rest."""
    steps = {"Scheduling": stage.bring_up_target, "PreparingTarget": stage.open_door, "TargetReady": stage.begin}
    rest = {**steps, "Running": stage.arrive, "ready": stage.leave}
    for step in list(rest.values())[PHASES.index(phase) :]:
        if stage.state.get("abortRequested") and not stage.state.get("completed"):
            stage.fail("cancelled")
        is_over = stage.phase() in ("Failed", "gone", "Succeeded") or stage.status["phase"] == "Failed"
        if not is_over and not stage.state.get("completed"):
            step()
        await stage.work()


@pytest.mark.parametrize(("party", "phase", "guest", "migration"), CELLS)
async def test_which_migrations_fail_and_when(
    party: Callable[[Stage], None], phase: str, guest: str, migration: str
) -> None:
    stage = Stage()
    await stage.until(phase)
    party(stage)
    await stage.work()
    stage.direct.refusals.clear()
    await stage.work()
    await go_on(stage, phase)

    assert f"{stage.status['phase']} on {stage.status['nodeName']}" == guest
    assert stage.phase() == migration
    if guest in (HERE, THERE):
        uids = {key.name: stage.store.get(POD, key)["metadata"]["uid"] for key in stage.pods}
        others = {target_of(stage, "second")} if party is second_migration else set()
        assert {uid for name, uid in uids.items() if name not in others} == set(stage.status["activePods"])


def target_of(stage: Stage, name: str) -> str:
    uids = (stage.store.get(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key("default", name)), stage.instance())
    job, vmi = (uid["metadata"]["uid"][:8] for uid in uids)
    return f"virt-launcher-web-{vmi}-m{job}"


@pytest.mark.parametrize("phase", PHASES)
async def test_a_second_migration_fails_while_the_first_is_active(phase: str) -> None:
    stage = Stage()
    await stage.until(phase)
    second_migration(stage)
    await stage.work()
    expected = "Scheduling" if phase == "Succeeded" else "Failed"
    assert stage.phase(Key("default", "second")) == expected

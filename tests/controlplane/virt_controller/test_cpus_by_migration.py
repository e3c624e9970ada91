# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU hotplug through all controllers: one migration, to a Pod that is large enough."""

from __future__ import annotations

from typing import Any

from kubevirt_api.names import SCHEDULABLE, VCPUS

from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE
from controlplane.virt_controller.hotplug.cpu import cpu_migration_reason
from tests.controlplane.virt_controller.workload_update.test_reconciler import WEB, Updating

LABELS = {SCHEDULABLE: "true", "host-model-cpu.node.kubevirt.io/EPYC": "true"}


def domain(sockets: int) -> dict[str, Any]:
    cpu = {"cores": 1, "sockets": sockets, "threads": 1, "maxSockets": 4}
    return {"domain": {"memory": {"guest": "64Mi"}, "cpu": cpu}}


async def a_guest_with_one_cpu() -> Updating:
    stage = Updating(["LiveMigrate"], (cpu_migration_reason,), "launcher:2")
    for key, _body in stage.store.list(NODE):
        stage.store.patch(NODE, key, {"metadata": {"labels": LABELS}})
    stage.catch_up()
    await stage.run_guest(spec=domain(1))
    stage.tell_instance({"launcherContainerImageVersion": "launcher:2"})
    return stage


async def give_a_socket(stage: Updating) -> None:
    """Add a socket, as the VM controller does."""
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"spec": domain(2)})
    stage.catch_up()
    await stage.work()


async def move(stage: Updating) -> None:
    """Complete the migration, with every party doing its part."""
    await stage.work()
    for step in (stage.bring_up_target, stage.open_door, stage.begin, stage.arrive, stage.leave):
        step()
        await stage.work()


def condition_types_of(stage: Updating) -> set[str]:
    return {condition["type"] for condition in stage.instance(WEB)["status"]["conditions"]}


async def test_a_guest_migrates_once_to_a_pod_that_is_large_enough() -> None:
    stage = await a_guest_with_one_cpu()
    await stage.update()
    assert stage.migrations == []
    await give_a_socket(stage)
    assert "HotVCPUChange" in condition_types_of(stage)
    await stage.update()
    (made,) = stage.migrations
    assert made["spec"] == {"vmiName": "web", "priority": "user-triggered"}
    await move(stage)
    target = stage.store.get(POD, stage.target)
    assert target["metadata"]["annotations"][VCPUS] == "2"
    assert target["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    await stage.update()
    assert len(stage.migrations) == 1, "its virt-handler gives it what it has room for"
    stage.tell_instance({"currentCPUTopology": {"cores": 1, "sockets": 2, "threads": 1}})
    await stage.work()
    assert "HotVCPUChange" not in condition_types_of(stage)

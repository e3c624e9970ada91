# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VM with kubevirt_vm alone: created, changed, stopped, started, restarted, refused, deleted; each twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.collection import linked_under
from tests.ad_hoc import Result, run_module
from tests.e2e.cluster import Cluster
from tests.e2e.machines import GUEST

pytestmark = pytest.mark.lab

Task = Callable[..., Result]
WEB = {
    "name": "web",
    "memory": "128Mi",
    "image": GUEST,
    "interfaces": [{"name": "default", "masquerade": {}}],
    "networks": [{"name": "default", "pod": {}}],
}
WAIT = {"wait": True, "wait_timeout": 120}


@pytest.fixture
def task(cluster: Cluster, tmp_path: Path) -> Task:
    """Run one module by Ansible on localhost; return its result."""
    collections = linked_under(tmp_path)

    def run(module: str = "kubevirt_vm", *flags: str, **options: Any) -> Result:
        return run_module(cluster.kubeconfig, collections, module, *flags, **{"namespace": "default", **options})

    return run


def changed(result: Result) -> bool:
    assert not result["failed"], result
    is_changed: bool = result["changed"]
    return is_changed


def test_all_states_of_a_vm(task: Task) -> None:
    created = task(**WEB, **WAIT)
    assert changed(created)
    assert created["result"]["status"]["ready"] is True
    assert not changed(task(**WEB, **WAIT))
    first = task("kubevirt_vmi_info", name="web")["resources"][0]
    assert first["status"]["interfaces"][0]["ipAddress"]

    assert not changed(task(name="web", state="started", **WAIT))
    assert changed(task("kubevirt_vm", "--check", name="web", state="restarted"))
    assert changed(task(name="web", state="restarted", grace_period_seconds=0, **WAIT))
    second = task("kubevirt_vmi_info", name="web", wait=True)["resources"][0]
    assert second["metadata"]["uid"] != first["metadata"]["uid"]

    assert changed(task("kubevirt_vm", "--check", name="web", state="stopped"))
    assert task("kubevirt_vmi_info", name="web")["resources"], "a dry run stops nothing"
    assert changed(task(name="web", state="stopped", **WAIT))
    assert task("kubevirt_vmi_info", name="web")["resources"] == []
    assert not changed(task(name="web", state="stopped", **WAIT))
    assert not changed(task(**WEB)), "a declaration without a run strategy starts no stopped machine"

    assert changed(task(name="web", state="started", **WAIT))
    assert changed(task(name="web", state="absent", **WAIT))
    assert task("kubevirt_vmi_info", name="web")["resources"] == []
    assert not changed(task(name="web", state="absent", **WAIT))


def conditions(result: Result) -> set[str]:
    return {
        condition["type"] for condition in result["result"]["status"]["conditions"] if condition["status"] == "True"
    }


def test_the_guest_of_an_instance_is_operated(task: Task, tmp_path: Path) -> None:
    bare = {"name": "bare", **WAIT}
    created = task("kubevirt_vmi", **{**WEB, **bare}, start_paused=True)
    assert changed(created)
    assert "Paused" in conditions(created)
    agent = {"type": "AgentConnected"}
    assert changed(task("kubevirt_vmi", **bare, state="unpaused", wait_condition=agent))
    (guest,) = task("kubevirt_vmi_info", name="bare", guest=True)["guests"]
    assert (guest["agent"], guest["info"]["os"]["id"]) == (True, "virtops-guest")

    login = [
        {"send": "", "expect": "login: $"},
        {"send": "root", "expect": "Password: $"},
        {"send_secret": "virtops", "expect": "# $"},
        {"send": "echo $((6 * 7))x", "expect": "^([0-9]+)x$"},
    ]
    console = task("kubevirt_console", name="bare", steps=login, log_lines=200)
    assert changed(console)
    assert console["steps"][3]["groups"] == ["42"]
    assert any("login:" in line for line in console["log"])
    missed = task("kubevirt_vmi", name="bare", wait=True, wait_timeout=1, wait_condition={"type": "Missing"})
    assert missed["msg"].endswith("\n".join(("; the last lines on its console:", *missed["console"])))

    assert not changed(task("kubevirt_console", name="bare", steps=[{"expect": "login:"}])), "printed before"
    dest = tmp_path / "bare.png"
    screen = task("kubevirt_screenshot", name="bare", dest=str(dest), mode="0600")
    assert changed(screen)
    assert (screen["size"], screen["width"] > 0) == (dest.stat().st_size, True)

    frozen = task("kubevirt_vmi", **bare, state="frozen", unfreeze_timeout=60)
    assert (changed(frozen), frozen["result"]["status"]["fsFreezeStatus"]) == (True, "frozen")
    assert not changed(task("kubevirt_vmi", **bare, state="frozen"))
    assert "fsFreezeStatus" not in task("kubevirt_vmi", **bare, state="unfrozen")["result"]["status"]
    paused = task("kubevirt_vmi", **bare, state="paused")
    assert changed(paused)
    assert "Paused" in conditions(paused)
    assert not changed(task("kubevirt_vmi", **bare, state="paused"))
    assert "unpause it first" in task("kubevirt_vmi", **bare, state="softrebooted")["msg"]
    assert changed(task("kubevirt_vmi", **bare, state="unpaused"))
    assert changed(task("kubevirt_vmi", **bare, state="reset"))
    assert changed(task("kubevirt_vmi", **bare, state="absent"))
    assert not changed(task("kubevirt_vmi", **bare, state="absent"))


@pytest.mark.nightly
def test_a_set_is_scaled_and_exposed(task: Task) -> None:
    workers = {"name": "workers", **WAIT}
    machine = {key: value for key, value in WEB.items() if key != "name"}
    created = task("kubevirt_replicaset", **machine, **workers, labels={"app": "workers"})
    assert created["result"]["status"]["readyReplicas"] == 1
    assert not changed(task("kubevirt_replicaset", **machine, **workers, labels={"app": "workers"}))
    service = task("kubevirt_service", replicaset="workers", ports=[{"port": 80}])
    assert service["result"]["spec"]["selector"] == {"app": "workers"}
    assert changed(task("kubevirt_replicaset", **workers, replicas=0))
    assert changed(task("kubevirt_replicaset", **workers, state="absent"))
    assert task("kubevirt_vmi_info", label_selectors=["app=workers"])["resources"] == []


@pytest.mark.nightly
def test_a_pool_is_scaled_and_changed(task: Task) -> None:
    pooled = {"name": "pooled", **WAIT}
    machine = {key: value for key, value in WEB.items() if key != "name"}
    created = task("kubevirt_pool", **machine, **pooled, labels={"app": "pooled"})
    assert created["result"]["status"]["readyReplicas"] == 1
    assert not changed(task("kubevirt_pool", **machine, **pooled, labels={"app": "pooled"}))
    before = task("kubevirt_vmi_info", name="pooled-0")["resources"][0]["metadata"]["uid"]
    assert changed(task("kubevirt_pool", **pooled, memory="96Mi"))
    (after,) = task("kubevirt_vmi_info", name="pooled-0")["resources"]
    assert after["spec"]["domain"]["memory"]["guest"] == "96Mi", "the task waited for the restart of all machines"
    assert after["metadata"]["uid"] != before
    assert changed(task("kubevirt_pool", **pooled, state="absent"))
    assert task("kubevirt_vmi_info", label_selectors=["app=pooled"])["resources"] == []


@pytest.mark.nightly
def test_a_timeout_reports_the_message_of_the_scheduler(task: Task) -> None:
    result = task(**{**WEB, "name": "large", "memory": "4Ti"}, wait=True, wait_timeout=5)
    assert result["failed"] is True
    assert "nsufficient memory" in result["msg"]
    assert result["printable_status"] == "ErrorUnschedulable"
    task(name="large", state="absent", **WAIT)


@pytest.mark.nightly
def test_a_timeout_reports_the_message_of_the_registry(task: Task) -> None:
    result = task(**{**WEB, "name": "unpulled", "image": "localhost/no/such:1"}, wait=True, wait_timeout=10)
    assert result["failed"] is True
    assert "localhost/no/such:1" in result["msg"]
    task(name="unpulled", state="absent", **WAIT)


def test_an_unsupported_field_is_refused_by_name(task: Task) -> None:
    result = task(**{**WEB, "name": "unknown"}, spec={"domain": {"colour": "red"}})
    assert result["failed"] is True
    assert "colour" in result["msg"]
    assert task("kubevirt_vm_info", name="unknown")["resources"] == []

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ends of runs and the run strategy: real guests that shut down, are killed, or refuse to shut down.

All machines start in parallel. test_guest_ends.py has the ends that take longer.
"""

from __future__ import annotations

import json

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.ends import delete, event_message, is_stopped
from tests.e2e.machines import a_panicking_vm, a_vm, with_grace

pytestmark = pytest.mark.lab

GOES = "#!/bin/sh\npoweroff -f\n"
DEAF = "#!/bin/sh\nrm -r /etc/acpi\n"
IS_DEAF = "user-data exited with 0"


@pytest.fixture(scope="module", autouse=True)
def machines(cluster: Cluster) -> None:
    """Create every machine of this module at once."""
    cluster.apply(
        a_vm("launcherless", runStrategy="RerunOnFailure"),
        a_vm("qemuless", runStrategy="Once"),
        a_vm("podless"),
        with_grace(a_vm("deaf", user_data=DEAF, runStrategy="Once"), 5),
        with_grace(a_vm("patient", user_data=DEAF), 600),
        a_vm("always-off", user_data=GOES),
        a_vm("rerun-off", user_data=GOES, runStrategy="RerunOnFailure"),
        a_panicking_vm("panics-once", "Once", "isa"),
    )


def test_a_run_whose_launcher_is_killed_fails_with_an_event_and_is_restarted(cluster: Cluster) -> None:
    uid = cluster.running("launcherless")["metadata"]["uid"]

    assert cluster.kill("virt-launcher", cluster.launcher("launcherless")["metadata"]["uid"]) > 0

    cluster.another("launcherless", uid)
    assert "137" in event_message(cluster, uid, "Warning", "Stopped")
    assert uid not in cluster.emulators()
    delete(cluster, "launcherless")


def test_a_run_whose_qemu_is_killed_fails_and_is_kept_with_strategy_once(cluster: Cluster) -> None:
    uid = cluster.running("qemuless")["metadata"]["uid"]

    assert cluster.kill("qemu", uid) == 1

    cluster.wait("vmi", "qemuless", ".status.phase", "Failed")
    assert "crashed" in event_message(cluster, uid, "Warning", "Stopped"), (
        "by virt-handler or virt-controller, whichever observes it first"
    )
    is_stopped(cluster, "qemuless")
    assert cluster.get("vmi", "qemuless")["metadata"]["uid"] == uid  # type: ignore[index]
    delete(cluster, "qemuless")


def test_a_machine_whose_pod_is_deleted_gets_another_instance(cluster: Cluster) -> None:
    uid = cluster.running("podless")["metadata"]["uid"]

    cluster.kubectl("delete", "pod", cluster.launcher("podless")["metadata"]["name"], "--wait=false")

    cluster.another("podless", uid)
    assert uid not in cluster.emulators()
    delete(cluster, "podless")


def test_a_guest_that_ignores_the_power_button_is_ended_after_its_grace_period(cluster: Cluster) -> None:
    uid = cluster.running("deaf")["metadata"]["uid"]
    with cluster.console(cluster.launcher("deaf")["metadata"]["name"]) as console:
        console.expect(IS_DEAF)

    cluster.kubectl("delete", "vm", "deaf", "--wait=false")

    cluster.wait_gone("vmi", "deaf")
    assert "did not shut down within its grace period" in event_message(cluster, uid, "Warning", "Stopped")
    ends = [
        (why, message) for _unused, why, message in cluster.events(uid) if why in ("ShuttingDown", "Deleted", "Stopped")
    ]
    # virt-handler counts from its shutdown request, the launcher from the deletion of its Pod: either may be first.
    assert [why for why, _unused in ends if why != "Deleted"] == ["ShuttingDown", "Stopped"]
    assert [message for why, message in ends if why == "Deleted"] in (
        [],
        ["Signaled Deletion: its grace period is over"],
    )


def test_a_forced_stop_does_not_wait_for_the_grace_period(cluster: Cluster) -> None:
    """The grace period is ten minutes, and the guest would use it."""
    first = cluster.running("patient")["metadata"]["uid"]
    pod = cluster.launcher("patient")["metadata"]["name"]
    with cluster.console(pod) as console:
        console.expect(IS_DEAF)

    cluster.subresource("patient", "restart", body=json.dumps({"gracePeriodSeconds": 0}))
    second = cluster.another("patient", first)["metadata"]["uid"]
    cluster.wait_gone("pod", pod)
    cluster.running("patient")
    assert cluster.emulators().count(second) == 1

    cluster.subresource("patient", "stop", body=json.dumps({"gracePeriod": 0}))
    cluster.wait_gone("vmi", "patient")
    is_stopped(cluster, "patient")
    assert not {first, second} & set(cluster.emulators())


def test_a_guest_that_powers_off_is_restarted_with_strategy_always(cluster: Cluster) -> None:
    uids: list[str] = []
    for _each in range(3):
        uids.append(cluster.another("always-off", uids[-1] if uids else "")["metadata"]["uid"])
    delete(cluster, "always-off")

    assert len(set(uids)) == 3


def test_a_successful_run_is_removed_and_not_restarted_with_strategy_rerun_on_failure(cluster: Cluster) -> None:
    vm = is_stopped(cluster, "rerun-off")

    cluster.wait_gone("vmi", "rerun-off")
    assert not vm["status"].get("startFailure")
    assert "SuccessfulDelete" in [why for _unused, why, _unused in cluster.events(vm["metadata"]["uid"])]


def test_a_kernel_panic_fails_the_run_with_an_event(cluster: Cluster) -> None:
    cluster.wait("vmi", "panics-once", ".status.phase", "Failed")
    uid = cluster.get("vmi", "panics-once")["metadata"]["uid"]  # type: ignore[index]

    assert "panicked" in event_message(cluster, uid, "Warning", "GuestPanicked")
    assert event_message(cluster, uid, "Warning", "Stopped") == "The VirtualMachineInstance crashed."
    assert cluster.get("vmi", "panics-once")["status"]["reason"] == "GuestPanicked"  # type: ignore[index]
    is_stopped(cluster, "panics-once")
    assert uid not in cluster.emulators()

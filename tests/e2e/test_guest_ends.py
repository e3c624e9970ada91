# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends of runs that take longer than those of test_lifecycle.py: watchdogs, reboots, panics, a QEMU that hangs."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.e2e.cluster import READY, Cluster
from tests.e2e.ends import delete, event_message, is_stopped, phase
from tests.e2e.machines import Manifest, a_panicking_vm, a_vm, with_domain, with_grace

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

DEAF = "#!/bin/sh\nrm -r /etc/acpi\n"
IS_DEAF = "user-data exited with 0"
GOES = "#!/bin/sh\npoweroff -f\n"
REBOOTS = "#!/bin/sh\nreboot -f\n"
HANGS = """#!/bin/sh
watchdog -F -t 1 -T 4 /dev/watchdog &
until ls -l /proc/$!/fd | grep -q /dev/watchdog; do sleep 1; done
sleep 2
kill -9 $!
"""
SLOW_SECONDS = 61.0
"""Longer than virt-handler waits for the response to a start, and than a launcher tolerates a silent libvirtd."""

STOP_WHEN_IT_APPEARS = """
import os, signal, sys, time
until = time.monotonic() + 90
while time.monotonic() < until:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline").read()
        except OSError:
            continue
        if line.startswith("/usr/bin/qemu-system-x86_64") and sys.argv[1] in line:
            os.kill(int(pid), signal.SIGSTOP)
            sys.exit()
    time.sleep(0.005)
sys.exit("it has no QEMU")
"""


def a_watched(name: str, **watchdog: str) -> Manifest:
    """Return a machine whose guest stops to reset its watchdog."""
    dog = {"name": "dog", "i6300esb": watchdog}
    return with_domain(a_vm(name, user_data=HANGS, runStrategy="Once"), devices={"watchdog": dog})


def a_rebooting(name: str, run_strategy: str) -> Manifest:
    return with_domain(a_vm(name, user_data=REBOOTS, runStrategy=run_strategy), rebootPolicy="Terminate")


@pytest.fixture(scope="module")
def slow(cluster: Cluster) -> tuple[str, float]:
    """A machine whose QEMU has been stopped since its start: the UID of its instance, and the time of the stop
    (monotonic).
    """
    cluster.apply(a_vm("slow"))
    uid: str = cluster.eventually(lambda: cluster.get("vmi", "slow"), what="vmi/slow")["metadata"]["uid"]
    cluster.on_node(cluster.nodes[0], STOP_WHEN_IT_APPEARS, uid)
    return uid, time.monotonic()


@pytest.fixture(scope="module", autouse=True)
def machines(cluster: Cluster, slow: tuple[str, float]) -> None:
    """Create every machine of this module at once; the slow one first, because it takes longest."""
    cluster.apply(
        a_vm("qemuless", runStrategy="Once"),
        a_vm("podless"),
        with_grace(a_vm("patient", user_data=DEAF), 600),
        a_vm("always-off", user_data=GOES),
        a_vm("rerun-off", user_data=GOES, runStrategy="RerunOnFailure"),
        a_panicking_vm("panics-once", "Once", "isa"),
        a_vm("once-off", user_data=GOES, runStrategy="Once"),
        a_vm("manual-off", user_data=GOES, runStrategy="Manual"),
        a_panicking_vm("panics-rerun", "RerunOnFailure", "pvpanic"),
        a_rebooting("reboots-always", "Always"),
        a_rebooting("reboots-once", "Once"),
        a_watched("hangs-off", action="poweroff"),
        a_watched("hangs-reset"),
    )
    cluster.subresource("manual-off", "start")


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


@pytest.mark.parametrize("name", ["once-off", "manual-off"])
def test_a_successful_run_is_kept_with_strategy_manual(cluster: Cluster, name: str) -> None:
    is_stopped(cluster, name)
    cluster.wait("vmi", name, ".status.phase", "Succeeded")


def test_a_run_that_a_panic_failed_is_restarted_with_strategy_rerun_on_failure(cluster: Cluster) -> None:
    cluster.another("panics-rerun", cluster.another("panics-rerun", "")["metadata"]["uid"])
    delete(cluster, "panics-rerun")


def test_a_reboot_ends_the_run_when_configured(cluster: Cluster) -> None:
    first = cluster.another("reboots-always", "")["metadata"]["uid"]
    cluster.another("reboots-always", first)
    assert event_message(cluster, first, "Normal", "Stopped") == "The VirtualMachineInstance was shut down."
    delete(cluster, "reboots-always")

    cluster.wait("vmi", "reboots-once", ".status.phase", "Succeeded")
    is_stopped(cluster, "reboots-once")


def test_an_expired_watchdog_fails_the_run_or_reboots_the_guest_in_its_pod(cluster: Cluster) -> None:
    cluster.wait("vmi", "hangs-off", ".status.phase", "Failed")
    uid = cluster.get("vmi", "hangs-off")["metadata"]["uid"]  # type: ignore[index]
    assert event_message(cluster, uid, "Warning", "Stopped") == "The VirtualMachineInstance crashed."

    pod = cluster.launcher("hangs-reset")["metadata"]["name"]

    def has_booted_twice() -> bool:
        return cluster.kubectl("logs", pod, "-c", "compute").count(READY) >= 2

    cluster.eventually(has_booted_twice, what="second boot of hangs-reset")
    assert phase(cluster, "hangs-reset") == "Running"
    delete(cluster, "hangs-reset")


def test_ended_machines_stay_ended(cluster: Cluster) -> None:
    """A wrong restart would have happened during the other tests of this module."""
    for name in ("once-off", "manual-off"):
        is_stopped(cluster, name)
        uid = cluster.get("vmi", name)["metadata"]["uid"]  # type: ignore[index]
        assert len(cluster.list("pods", "-l", f"vmi.kubevirt.io/id={name}")) == 1
        assert (phase(cluster, name), uid in cluster.emulators()) == ("Succeeded", False)


def test_a_slow_qemu_is_waited_for(cluster: Cluster, slow: tuple[str, float]) -> None:
    uid, since = slow
    cluster.eventually(lambda: time.monotonic() > since + SLOW_SECONDS, seconds=SLOW_SECONDS, what="time has passed")
    assert phase(cluster, "slow") in ("Scheduled", "Running"), "depends on when QEMU was stopped"

    assert cluster.signal(signal.SIGCONT, "qemu", uid) == 1

    assert cluster.running("slow")["metadata"]["uid"] == uid
    with cluster.console(cluster.launcher("slow")["metadata"]["name"]) as console:
        console.expect(READY)
    assert not {"Stopped", "Deleted", "ShuttingDown"} & {why for _unused, why, _unused in cluster.events(uid)}

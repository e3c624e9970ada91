# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kill -9 of each process, one at a time, while a VM runs: the guest's counter goes on, or the VM restarts once."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import READY, Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

BY_DAY = ("virt-handler", "libvirtd", "kube-apiserver")
BY_NIGHT = ("virt-node", "virt-controller", "virt-api", "kubelet", "containerd", "etcd")
SPARES_THE_GUEST = [*BY_DAY, *(pytest.param(victim, marks=pytest.mark.nightly) for victim in BY_NIGHT)]


@pytest.fixture(scope="module")
def guest(cluster: Cluster) -> str:
    """A running VM; returns its name."""
    cluster.apply(a_vm("survivor", runStrategy="Always"))
    cluster.running("survivor")
    with cluster.console(cluster.launcher("survivor")["metadata"]["name"]) as console:
        console.expect(READY)
    return "survivor"


@pytest.mark.parametrize("victim", SPARES_THE_GUEST)
def test_the_guest_goes_on_counting_while_a_process_is_killed(cluster: Cluster, guest: str, victim: str) -> None:
    before = cluster.get("vmi", guest)
    assert before is not None
    pod = cluster.launcher(guest)["metadata"]["name"]
    counted = cluster.counter(pod)

    assert cluster.kill(victim) > 0
    cluster.healthy()

    cluster.eventually(lambda: cluster.counter(pod) > counted + 2, what="the guest counts on")
    after = cluster.get("vmi", guest)
    assert after is not None
    assert (after["metadata"]["uid"], after["status"]["phase"]) == (before["metadata"]["uid"], "Running")
    assert cluster.emulators() == [before["metadata"]["uid"]]


@pytest.mark.nightly
@pytest.mark.parametrize("victim", ["virt-handler", "virt-node", "virt-controller", "virt-api"])
def test_new_machines_start_after_a_kill(cluster: Cluster, guest: str, victim: str) -> None:
    cluster.kill(victim)
    name = f"after-{victim}"
    cluster.eventually(
        lambda: cluster.try_kubectl("apply", "-f", "-", given=a_vm(name).text).returncode == 0,
        what="admission serves again",
    )

    # Wait for the VM and not for its first instance: while virt-node's device plugin is gone, a kubelet refuses the
    # Pod, and the VM creates another instance.
    cluster.wait("vm", name, ".status.printableStatus", "Running")
    cluster.kubectl("delete", "vm", name)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("strategy", "comes_back"), [pytest.param("Always", True, id="Always"), pytest.param("Manual", False, id="Manual")]
)
def test_a_vm_whose_qemu_is_killed_follows_its_run_strategy(cluster: Cluster, strategy: str, comes_back: bool) -> None:
    name = f"victim-{strategy.lower()}"
    cluster.apply(a_vm(name, runStrategy=strategy))
    if strategy == "Manual":
        cluster.subresource(name, "start")
    uid = cluster.running(name)["metadata"]["uid"]

    assert cluster.kill("qemu", uid) == 1
    cluster.eventually(lambda: uid not in cluster.emulators(), what="the killed QEMU is gone")

    if comes_back:
        cluster.eventually(
            lambda: (cluster.get("vmi", name) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
            what="a new instance",
        )
        renewed = cluster.running(name)["metadata"]["uid"]
        assert cluster.emulators().count(renewed) == 1
    else:
        cluster.wait("vmi", name, ".status.phase", "Failed")
    cluster.kubectl("delete", "vm", name)
    cluster.wait_gone("vmi", name)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher is an ordinary, unprivileged Pod; the components have no wildcard rights."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import GUEST, a_vm

pytestmark = pytest.mark.lab

OURS = """
import os
TOKEN = "var/run/secrets/kubernetes.io/serviceaccount/token"
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = open(f"/proc/{pid}/cmdline").read().replace(chr(0), " ").rstrip()
        name = line.rpartition("controlplane.")[2]
        if int(pid) == os.getpid() or name not in ("virt_handler", "virt_node"):
            continue
        rows = dict(row.split(":", 1) for row in open(f"/proc/{pid}/status").read().splitlines())
        user, effective, bound, forbidden, seccomp = (
            rows[key].split()[0] for key in ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
        )
        mine = {os.readlink(f"/proc/{pid}/fd/{one}") for one in os.listdir(f"/proc/{pid}/fd")}
        ports = set()
        for kind in ("tcp", "tcp6", "udp", "udp6"):
            for row in open(f"/proc/{pid}/net/{kind}").readlines()[1:]:
                fields = row.split()
                if fields[3] in ("0A", "07") and f"socket:[{fields[9]}]" in mine:
                    ports.add(int(fields[1].rpartition(":")[2], 16))
        has_token = os.path.exists(f"/proc/{pid}/root/{TOKEN}")
        has_libvirt = "libvirt" in open(f"/proc/{pid}/maps").read()
        has = (int(effective, 16) > 0, int(bound, 16) > 0)
        print(name, user, *has, forbidden, seccomp, has_token, has_libvirt, *ports)
    except (FileNotFoundError, ProcessLookupError):
        continue
"""
"""For each process: user, current and bounding capabilities, NoNewPrivs, seccomp, token, libvirt client, open ports."""


def test_a_namespace_that_enforces_restricted_admits_the_launcher(cluster: Cluster) -> None:
    """Its only addition to an empty Pod is the safe sysctl for DHCP, which restricted allows."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}})
    cluster.apply(a_vm("confined", namespace="strict"))
    cluster.running("confined", namespace="strict")

    pod = cluster.launcher("confined", "strict")
    (compute,) = pod["spec"]["containers"]
    assert pod["spec"]["securityContext"]["runAsUser"] == 107
    assert pod["spec"]["securityContext"]["sysctls"] == [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "67"}]
    assert compute["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not [volume for volume in pod["spec"]["volumes"] if "hostPath" in volume]
    log = cluster.kubectl("logs", "-n", "strict", pod["metadata"]["name"], "-c", "compute")
    assert ": error :" not in log, "libvirtd's, although nothing is wrong"
    cluster.kubectl("delete", "namespace", "strict", "--wait=false")


def test_the_processes_of_a_launcher_have_no_capability(cluster: Cluster) -> None:
    cluster.apply(a_vm("bare"))
    cluster.running("bare")

    script = (
        "import os\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try:\n"
        "        line = open(f'/proc/{pid}/cmdline').read()\n"
        "    except OSError:\n"
        "        continue\n"
        "    if int(pid) == os.getpid():\n"
        "        continue\n"
        "    if 'qemu-system' in line or 'virt_launcher' in line or '/libvirtd' in line:\n"
        "        rows = dict(row.split(':', 1) for row in open(f'/proc/{pid}/status').read().splitlines())\n"
        "        print(*(rows[key].split()[0] for key in ('Uid', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')))\n"
    )
    rows = {row for node in cluster.nodes for row in cluster.on_node(node, script).splitlines()}
    cluster.kubectl("delete", "vm", "bare")

    assert rows == {"107 0000000000000000 0000000000000000 1 2"}


def test_libvirt_clients_are_not_root_and_root_processes_have_no_token(cluster: Cluster) -> None:
    rows = {row for node in cluster.nodes for row in cluster.on_node(node, OURS).splitlines()}

    assert rows == {"virt_handler 60107 False False 1 2 True True 8186 8443", "virt_node 0 True True 0 0 False False"}


def test_user_data_reaches_the_guest_and_no_environment(cluster: Cluster) -> None:
    words = "correct-horse-battery"
    cluster.apply(a_vm("seeded", user_data=f"#!/bin/sh\necho heard {words} $$\n"))
    cluster.running("seeded")
    with cluster.console(cluster.launcher("seeded")["metadata"]["name"]) as console:
        console.expect(f"heard {words} ")

    script = (
        "import glob, sys\n"
        "for path in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try:\n"
        "        found = open(path, 'rb').read()\n"
        "    except OSError:\n"
        "        continue\n"
        "    if sys.argv[1].encode() in found:\n"
        "        print(path)\n"
    )
    lines = [line for node in cluster.nodes for line in cluster.on_node(node, script, words).splitlines()]
    cluster.kubectl("delete", "vm", "seeded")

    assert lines == []


@pytest.mark.nightly
def test_a_pod_that_fills_its_launcher_directory_is_evicted(cluster: Cluster) -> None:
    """A guest cannot: its disks are bounded. Here a user with `pods/exec` does it, as a compromised QEMU would."""
    kernel = {"container": {"image": GUEST, "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}
    spec = {"domain": {"memory": {"guest": "96Mi"}, "devices": {}, "firmware": {"kernelBoot": kernel}}}
    cluster.apply(
        {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance"}
        | {"metadata": {"name": "greedy", "namespace": "default"}, "spec": spec}
    )
    cluster.running("greedy")
    pod = cluster.launcher("greedy")["metadata"]["name"]
    script = "open('/run/launcher/junk', 'wb').write(bytes(200 << 20))"
    cluster.kubectl("exec", pod, "-c", "compute", "--", "/usr/bin/python3", "-c", script)

    def evicted() -> list[str]:
        events = cluster.list(
            "events", "-n", "default", "--field-selector", f"involvedObject.name={pod},reason=Evicted"
        )
        return [event["message"] for event in events]

    def phase() -> str:
        vmi = cluster.get("vmi", "greedy")
        return "" if vmi is None else vmi["status"]["phase"]

    # The kubelet measures the volumes of a Pod every one to two minutes.
    message = cluster.eventually(evicted, what=f"pod/{pod} is evicted")
    assert 'EmptyDir volume "run" exceeds the limit' in message[0]
    # The eviction has a grace period of one second: enough for a booted guest to shut down on the power button.
    cluster.eventually(lambda: phase() in ("Failed", "Succeeded"), what="vmi/greedy has ended")
    cluster.kubectl("delete", "vmi", "greedy")


def test_no_component_has_a_wildcard_rule(cluster: Cluster) -> None:
    names = ("kubevirt-controller", "kubevirt-apiserver", "kubevirt-handler")
    roles = [
        role for kind in ("clusterroles", "roles") for role in cluster.list(kind) if role["metadata"]["name"] in names
    ]

    assert {role["metadata"]["name"] for role in roles} == set(names)
    for role in roles:
        for rule in role["rules"]:
            for words in rule.values():
                assert not [word for word in words if "*" in word], role["metadata"]["name"]

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks on claims: the start waits for them, guests write to them, and the next start has the data."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import Manifest, a_vm

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

COUNTS_ITS_BOOTS = """#!/bin/sh
for disk in vdb vdc; do
  [ -b /dev/$disk ] || continue
  boots=$(head -c 1 /dev/$disk | tr -c 1-8 0)
  boots=$((boots + 1))
  printf $boots | dd of=/dev/$disk conv=notrunc 2> /dev/null && sync
  size=$(cat /sys/block/$disk/size)
  echo "boot $boots of $disk with $size sectors" > /dev/console
done
"""


def a_claim(name: str, mode: str, size: str = "16Mi") -> dict[str, Any]:
    resources = {"requests": {"storage": size}}
    spec = {"accessModes": ["ReadWriteOnce"], "volumeMode": mode, "resources": resources}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_claiming_vm(name: str, *claims: str, user_data: str = COUNTS_ITS_BOOTS) -> Manifest:
    vm = a_vm(name, user_data=user_data)
    spec = vm["spec"]["template"]["spec"]
    for claim in claims:
        spec["domain"]["devices"]["disks"].append({"name": claim, "disk": {"bus": "virtio"}})
        spec["volumes"].append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
    return vm


def another_than(uid: str, cluster: Cluster) -> str:
    """Return the UID of the running instance; "" while it is the old one, or none runs."""
    vmi = cluster.get("vmi", "keeper") or {}
    current: str = vmi.get("metadata", {}).get("uid", "")
    return current if vmi.get("status", {}).get("phase") == "Running" and current != uid else ""


def test_a_start_waits_for_its_claim_and_the_data_outlives_the_run(cluster: Cluster) -> None:
    cluster.apply(a_claiming_vm("keeper", "file", "device"))
    cluster.wait("vm", "keeper", ".status.printableStatus", "ErrorPvcNotFound")
    cluster.apply(a_claim("file", "Filesystem"), a_claim("device", "Block"))
    ended = ""
    for boot in (1, 2):
        cluster.eventually(partial(another_than, ended, cluster), what="another instance runs")
        with cluster.console(cluster.launcher("keeper")["metadata"]["name"]) as console:
            console.expect(f"boot {boot} of vdb with 32768 sectors")
            console.expect(f"boot {boot} of vdc with 32768 sectors")
        ended = another_than("", cluster)
        cluster.subresource("keeper", "restart")
    cluster.kubectl("delete", "vm/keeper", "pvc/file", "pvc/device")
    cluster.wait_gone("vmi", "keeper")

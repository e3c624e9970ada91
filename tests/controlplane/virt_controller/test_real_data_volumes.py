# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-controller on a real API server whose CDI kind is installed and removed, with the test in the role of CDI.

The CustomResourceDefinition has CDI's name and version, and no schema.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.controlplane.virt_controller import test_real_api
from tests.controlplane.virt_controller.test_real_api import VM, Cluster

pytestmark = pytest.mark.component
cluster = test_real_api.cluster

DEFINITION = "datavolumes.cdi.kubevirt.io"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": DEFINITION},
    "spec": {
        "group": "cdi.kubevirt.io",
        "names": {"kind": "DataVolume", "plural": "datavolumes", "singular": "datavolume", "shortNames": ["dv"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}},
            }
        ],
    },
}
SOURCE = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Mi"}}}}


def a_vm() -> dict[str, Any]:
    machine = {**VM["spec"]["template"]["spec"], "volumes": [{"name": "root", "dataVolume": {"name": "disk"}}]}  # type: ignore[index]
    templates = [{"metadata": {"name": "disk"}, "spec": SOURCE}]
    spec = {"runStrategy": "Always", "dataVolumeTemplates": templates, "template": {"spec": machine}}
    return {**VM, "metadata": {"name": "imported", "namespace": "default"}, "spec": spec}


def fill(cluster: Cluster, phase: str) -> None:
    """Do CDI's work: create the claim, and report the phase."""
    owner_meta = cluster.get("dv", "disk")["metadata"]
    owner = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": "disk", "uid": owner_meta["uid"]}
    meta = {"name": "disk", "namespace": "default", "ownerReferences": [{**owner, "controller": True}]}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    if not cluster.kubectl("get", "pvc", "disk", "--ignore-not-found", "-o", "name"):
        cluster.kubectl("create", "-f", "-", body=claim)
    cluster.report("dv/disk", {"phase": phase})


def test_a_vm_waits_for_its_data_volume_and_cdi_can_be_removed(cluster: Cluster) -> None:
    with cluster.controller("one"):
        cluster.kubectl("create", "-f", "-", body=a_vm())
        cluster.wait("vm/imported", '.status.conditions[?(@.type=="Failure")].reason', "FailedDataVolumeCreate")

        cluster.kubectl("create", "-f", "-", body=CRD)
        cluster.appear("dv/disk")
        data_volume = cluster.get("dv", "disk")
        assert data_volume["spec"] == SOURCE
        assert data_volume["metadata"]["ownerReferences"][0]["uid"] == cluster.get("vm", "imported")["metadata"]["uid"]
        cluster.wait("vm/imported", ".status.printableStatus", "Provisioning")
        fill(cluster, "ImportInProgress")
        assert not cluster.kubectl("get", "vmi", "imported", "--ignore-not-found", "-o", "name")
        fill(cluster, "Failed")
        cluster.wait("vm/imported", ".status.printableStatus", "DataVolumeError")
        fill(cluster, "Succeeded")
        cluster.appear("vmi/imported")
        cluster.wait("vmi/imported", ".status.phase", "Scheduling")
        cluster.wait("vmi/imported", '.status.conditions[?(@.type=="DataVolumesReady")].status', "True")
        cluster.kubectl("wait", "pod", "-l", "vmi.kubevirt.io/id=imported", "--for=create", "--timeout=300s")
        info = cluster.get("vmi", "imported")["status"]["volumeStatus"][0]["persistentVolumeClaimInfo"]
        assert (info["claimName"], info["requests"]) == ("disk", {"storage": "1Mi"})
        events = json.loads(cluster.kubectl("get", "events", "-o", "json"))["items"]
        assert "SuccessfulDataVolumeCreate" in {event["reason"] for event in events}

        cluster.kubectl("delete", "crd", DEFINITION, "--timeout=300s")
        cluster.kubectl("delete", "vm", "imported", "--wait=false")
        cluster.kubectl("delete", "pod", "--all", "--force", "--grace-period=0")
        cluster.kubectl("wait", "vm/imported", "--for=delete", "--timeout=300s")

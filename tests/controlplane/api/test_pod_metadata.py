# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labels and annotations of a machine reach its Pod, as tables."""

from __future__ import annotations

import pytest

from controlplane.api.pod_metadata import ANNOTATIONS_LIMIT_BYTES, held_back, passed_annotations, passed_labels

LABELS = {
    "app": True,
    "special": True,
    "app.kubernetes.io/name": True,
    "example.com/team": True,
    "sidecar.istio.io/inject": True,
    "kueue.x-k8s.io/queue-name": True,
    "kubevirt.io/vm": True,
    "kubevirt.io/domain": True,
    "kubevirt.io/vmpool": True,
    "notkubevirt.io/x": True,
    "service.istio.io/canonical-name": True,
    "velero.io/exclude-from-backup": True,
    "job-names": True,
    "example.com/job-name": True,
    "pod-template-hash": False,
    "controller-revision-hash": False,
    "pod-template-generation": False,
    "controller-uid": False,
    "job-name": False,
    "aadpodidbinding": False,
    "io.kubernetes.pod.namespace": False,
    "io.cilium.k8s.policy.serviceaccount": False,
    "azure.workload.identity/use": False,
    "admission.datadoghq.com/enabled": False,
    "eks.amazonaws.com/fargate-profile": False,
    "sidecar.istio.io/other": False,
    "topology.istio.io/network": False,
    "istio.io/dataplane-mode": False,
    "linkerd.io/control-plane-ns": False,
    "projectcalico.org/namespace": False,
    "kueue.x-k8s.io/managed": False,
    "leaderworkerset.sigs.k8s.io/name": False,
    "workflows.argoproj.io/workflow": False,
    "serving.knative.dev/revision": False,
    "tekton.dev/taskRun": False,
    "volcano.sh/job-name": False,
    "openshift.io/deployer-pod-for.name": False,
    "cloud.google.com/x": False,
    "spiffe.io/spire-managed-identity": False,
    "spiffe.io/spiffe-id": False,
    "kuma.io/sidecar-injection": False,
    "traffic.kuma.io/x": False,
    "alibabacloud.com/eci": False,
    "apps.kruise.io/specified-delete": False,
    "lifecycle.apps.kruise.io/state": False,
    "alibabacloud.com.example/eci": True,
    "apps.kubernetes.io/pod-index": False,
    "job.batch.kubernetes.io/x": False,
    "kubevirt.io": False,
    "virtops.kubevirt": False,
    "kubevirt.io/nodeName": False,
    "kubevirt.io/created-by": False,
    "kubevirt.io/migrationJobUID": False,
    "kubevirt.io/anything": False,
    "vm.kubevirt.io/name": False,
    "vmi.kubevirt.io/id": False,
    "virtops.kubevirt/x": False,
    "kubernetes.io/x": False,
    "batch.kubernetes.io/job-name": False,
    "statefulset.kubernetes.io/pod-name": False,
    "topology.kubernetes.io/zone": False,
    "x.k8s.io/y": False,
}
ANNOTATIONS = {
    "descheduler.alpha.kubernetes.io/evict": True,
    "cluster-autoscaler.kubernetes.io/safe-to-evict": True,
    "karpenter.sh/do-not-disrupt": True,
    "prometheus.io/scrape": True,
    "sidecar.istio.io/inject": True,
    "traffic.sidecar.istio.io/excludeInboundPorts": True,
    "linkerd.io/inject": True,
    "kubernetes.io/egress-bandwidth": True,
    "backup.velero.io/backup-volumes-excludes": True,
    "mine": False,
    "example.com/owner": False,
    "k8s.v1.cni.cncf.io/networks": False,
    "v1.multus-cni.io/default-network": False,
    "container.apparmor.security.beta.kubernetes.io/compute": False,
    "container.seccomp.security.alpha.kubernetes.io/compute": False,
    "seccomp.security.alpha.kubernetes.io/pod": False,
    "sidecar.istio.io/proxyImage": False,
    "sidecar.istio.io/userVolume": False,
    "pre.hook.backup.velero.io/command": False,
    "kubernetes.io/config.mirror": False,
    "io.kubernetes.cri-o.userns-mode": False,
    "kubevirt.io/launch-plan": False,
    "kubevirt.io/domain": False,
    "virtops.kubevirt/template-hash": False,
    "kubectl.kubernetes.io/last-applied-configuration": False,
    "prometheus.io.evil/x": False,
    "x.prometheus.io/y": False,
}


@pytest.mark.parametrize(("key", "passes"), LABELS.items(), ids=LABELS.keys())
def test_ordinary_labels_pass_and_reserved_ones_do_not(key: str, passes: bool) -> None:
    assert passed_labels({key: "x"}) == ({key: "x"} if passes else {})


@pytest.mark.parametrize(("key", "passes"), ANNOTATIONS.items(), ids=ANNOTATIONS.keys())
def test_only_known_annotations_pass(key: str, passes: bool) -> None:
    assert passed_annotations({key: "x"}) == ({key: "x"} if passes else {})


def test_dropped_metadata_is_named() -> None:
    labels = ["app", "kubevirt.io/nodeName", "topology.kubernetes.io/zone"]
    annotations = ["mine", "prometheus.io/port", "kubevirt.io/vm-generation", "k8s.v1.cni.cncf.io/networks"]
    annotations += ["kubectl.kubernetes.io/last-applied-configuration", "vm.kubevirt.io/os"]

    assert held_back(labels, annotations) == [
        "k8s.v1.cni.cncf.io/networks",
        "kubevirt.io/nodeName",
        "mine",
        "topology.kubernetes.io/zone",
    ]


def test_annotations_that_leave_no_room_for_the_launch_plan_are_refused() -> None:
    key = "prometheus.io/path"
    fits = "x" * (ANNOTATIONS_LIMIT_BYTES - len(key))
    assert passed_annotations({key: fits, "mine": "x" * 200_000}) == {key: fits}
    with pytest.raises(ValueError, match=f"at most {ANNOTATIONS_LIMIT_BYTES} are passed on"):
        passed_annotations({key: fits + "x"})

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labels and annotations of a machine are copied to its launcher Pod. Pure; for admission and virt-controller.

Labels: Services, policies and budgets select by any label, so all are copied, except those that make a known controller
act on the Pod. docs/security.md explains why this is no allow-list. Annotations can enable features (networks,
profiles, volumes, sidecar images) with the rights of the Pod's creator, virt-controller: only harmless ones are copied.
docs/api.md has the lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LABELS_OF_KUBEVIRT = frozenset(
    {"kubevirt.io/domain", "kubevirt.io/os", "kubevirt.io/size", "kubevirt.io/vm", "kubevirt.io/vmpool"}
)
"""Labels that upstream's examples use to select VMIs. All others of its domains belong to the control plane."""
LABEL_DOMAINS_OF_KUBERNETES = frozenset({"app.kubernetes.io"})
LABELS_OF_CONTROLLERS = frozenset(
    {
        "aadpodidbinding",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "pod-template-hash",
    }
)
"""Labels without a domain. Workload controllers select their Pods by them; one gives a Pod an identity."""
DOMAINS_OF_CONTROLLERS = (
    "alibabacloud.com", "amazonaws.com", "argoproj.io", "azure.com", "azure.workload.identity", "cilium.io",
    "cloud.google.com", "datadoghq.com", "gke.io", "istio.io", "karpenter.sh", "knative.dev", "kruise.io", "kuma.io",
    "linkerd.io", "openshift.io", "projectcalico.org", "spiffe.io", "tekton.dev", "velero.io", "volcano.sh", "x-k8s.io",
)  # fmt: skip
"""Controllers act on labels of these domains and their subdomains: they change, adopt or delete Pods."""
LABELS_FOR_CONTROLLERS = frozenset(
    {
        "kueue.x-k8s.io/priority-class",
        "kueue.x-k8s.io/queue-name",
        "service.istio.io/canonical-name",
        "service.istio.io/canonical-revision",
        "sidecar.istio.io/inject",
        "tags.datadoghq.com/env",
        "tags.datadoghq.com/service",
        "tags.datadoghq.com/version",
        "velero.io/exclude-from-backup",
    }
)
"""Exceptions in these domains, which users may set. They queue, name or exclude a Pod."""
ANNOTATIONS = frozenset(
    {
        "backup.velero.io/backup-volumes",
        "backup.velero.io/backup-volumes-excludes",
        "karpenter.sh/do-not-disrupt",
        "kubernetes.io/egress-bandwidth",
        "kubernetes.io/ingress-bandwidth",
        "linkerd.io/inject",
        "sidecar.istio.io/inject",
    }
)
ANNOTATION_DOMAINS = frozenset(
    {
        "cluster-autoscaler.kubernetes.io",
        "descheduler.alpha.kubernetes.io",
        "prometheus.io",
        "traffic.sidecar.istio.io",
    }
)
ANNOTATIONS_LIMIT_BYTES = 32 * 1024
"""Limit of all passed annotations: annotations of an object share 256 KiB, and the launch plan is one of them."""

_KUBEVIRT = ("kubevirt.io", "virtops.kubevirt")
_KUBERNETES = ("kubernetes.io", "k8s.io")
_RUNTIMES = ("io.kubernetes.", "io.cilium.")
"""Prefixes of labels without a domain by which runtimes and networks identify Pods."""
_BOOKKEEPING = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


def passed_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a launcher Pod gets."""
    return {key: value for key, value in labels.items() if _passes_as_label(key)}


def passed_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that a launcher Pod gets. ValueError when they are too long."""
    passed = {key: value for key, value in annotations.items() if is_passed_annotation(key)}
    size = sum(len(key.encode()) + len(value.encode(errors="replace")) for key, value in passed.items())
    if size > ANNOTATIONS_LIMIT_BYTES:
        raise ValueError(
            f"annotations for the launcher Pod have {size} bytes, at most {ANNOTATIONS_LIMIT_BYTES} are passed on"
        )
    return passed


def held_back(labels: Iterable[str], annotations: Iterable[str]) -> list[str]:
    """Return the keys that are not copied, without keys that do not concern a Pod anyway."""
    keys = {key for key in labels if not _passes_as_label(key)}
    keys |= {key for key in annotations if not (is_passed_annotation(key) or _is_bookkeeping(key))}
    return sorted(keys)


def is_passed_annotation(key: str) -> bool:
    """Tell whether a launcher Pod gets an annotation."""
    return key in ANNOTATIONS or _domain(key) in ANNOTATION_DOMAINS


def _passes_as_label(key: str) -> bool:
    domain = _domain(key)
    if key in _KUBEVIRT or _is_below(domain, _KUBEVIRT):
        return key in LABELS_OF_KUBEVIRT
    if domain in LABEL_DOMAINS_OF_KUBERNETES or key in LABELS_FOR_CONTROLLERS:
        return True
    return not (_is_below(domain, _KUBERNETES + DOMAINS_OF_CONTROLLERS) or _is_of_controllers(key))


def _is_of_controllers(key: str) -> bool:
    return key in LABELS_OF_CONTROLLERS or key.startswith(_RUNTIMES)


def _is_bookkeeping(key: str) -> bool:
    return key in _BOOKKEEPING or _is_below(_domain(key), _KUBEVIRT)


def _domain(key: str) -> str:
    return key.rpartition("/")[0]


def _is_below(domain: str, roots: tuple[str, ...]) -> bool:
    return any(domain == root or domain.endswith(f".{root}") for root in roots)

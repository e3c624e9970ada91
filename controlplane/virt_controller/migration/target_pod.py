# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target Pod of a migration: a launcher Pod with additional constraints. Pure.

Its container disks are pinned to the digests that the source Pod reports: a tag may refer to another image by now, and
the guest would continue with a different disk. Its node selector requires a CPU that can run the guest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kubevirt_api.names import KVM_DEVICE, MIGRATION_JOB

from controlplane.api.cpu_labels import needed_at_target
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.pod import DIGEST, Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.migration.world import World
from controlplane.virt_controller.vmi.launcher_pod import Target, build_launcher_pod

Json = dict[str, Any]

NO_LABELS: Mapping[str, str] = MappingProxyType({})


def build_target_pod(
    world: World,
    *,
    image: str,
    image_pull_secrets: tuple[str, ...],
    claims: Claims,
    excluded_nodes: frozenset[str],
    source_labels: Mapping[str, str] = NO_LABELS,
) -> Json:
    """Build the Pod. Raises ValueError with the part of the VMI that cannot be built.

    image: the current launcher image. source_labels: labels of the source node.
    """
    vmi, migration = world.vmi, world.migration
    if vmi is None:
        raise ValueError("its VMI is gone")
    source = next((pod for pod in world.launchers if pod.uid in vmi.status.active_pods), None)
    built = build_launcher_pod(
        vmi,
        attempt=max(vmi.status.attempt, 1),
        image=image,
        image_pull_secrets=image_pull_secrets,
        configuration=world.configuration,
        claims=claims,
        excluded_nodes=excluded_nodes,
        target=Target(
            pod_name=world.target_pod,
            migration=migration.metadata.name,
            migration_uid=world.uid,
            node_selector=migration.spec.added_node_selector,
            needs=_cpu_labels(vmi, source, source_labels),
        ),
    )
    return built if source is None else _pinned(built, source)


def _cpu_labels(vmi: VirtualMachineInstance, source: Pod | None, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the node labels of CPUs that can run the guest; empty if the guest is emulated."""
    if source is None or not source.was_given(KVM_DEVICE):
        return {}
    cpu = vmi.spec.domain.cpu
    model = "" if cpu is None else cpu.model
    former_target_labels = source.spec.node_selector if MIGRATION_JOB in source.metadata.labels else {}
    return needed_at_target(model, own=vmi.spec.node_selector, of_pod=former_target_labels, of_node=labels)


def _pinned(body: Json, source: Pod) -> Json:
    digests = source.image_digests
    for volume in body["spec"]["volumes"]:
        if "image" in volume and volume["name"] in digests:
            reference = _pin(volume["image"]["reference"], digests[volume["name"]])
            volume["image"] = {**volume["image"], "reference": reference}
    return body


def _pin(reference: str, reported: str) -> str:
    """Pin an image reference to the digest that the source's kubelet reports for the same repository.

    Without a matching digest the reference stays as it is.
    """
    repository, _unused, digest = reported.partition(DIGEST)
    is_digest = len(digest) == 64 and set(digest) <= set("0123456789abcdef")
    own_repository = _repository_of(reference)
    is_same = is_digest and DIGEST not in reference and _in_full(repository) == _in_full(own_repository)
    return f"{own_repository}{DIGEST}{digest}" if is_same else reference


def _repository_of(reference: str) -> str:
    name = reference.partition("@")[0]
    head, colon, tail = name.rpartition(":")
    return head if colon and "/" not in tail else name


def _in_full(repository: str) -> str:
    """Expand a repository name as container runtimes do: without a registry it is on Docker Hub."""
    registry, slash, rest = repository.partition("/")
    if slash and ("." in registry or ":" in registry or registry == "localhost"):
        return f"docker.io/{rest}" if registry == "index.docker.io" else repository
    return f"docker.io/{repository}" if slash else f"docker.io/library/{repository}"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which other instances write to the block devices of an instance: reads the caches, and keeps the creates under way.

An instance counts from the creation of its first Pod until it is final: its guest may run. A launcher Pod whose
instance is gone counts until it is over.

A create whose answer is still out, or was lost, is in no cache; `reserve` keeps it, so that of two instances that start
at once one waits. Another process may have sent a create, too: so the writers are looked for again before the grant. A
cache has the launcher Pods in the order of the API server. So of two instances with Pods at least the one whose Pod
came later sees the other Pod, in any process, and is not granted the start until that Pod is given up. Grant and name
alone decide which of them gives way, so two never both do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from controlplane.api.objects.claim import Claims
from controlplane.api.objects.decode import decode, readable_vmi
from controlplane.api.objects.phase import AFTER_HAND_OVER, is_final
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.engine.errors import ApiError, Conflict, Unavailable
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.kube.cache import PartialObject, read_partial
from controlplane.virt_controller.changes import StatusView, status_of, vmis_named
from controlplane.virt_controller.storage.claims import BY_CLAIM, claims_of_pod, claims_of_vmi
from controlplane.virt_controller.storage.written_claims import excludes, exclusive_claims
from controlplane.virt_controller.vmi.world import ClaimWriter, former_pod_names, is_controlled

BY_GRANTED_CLAIM = "claim of a granted run"
"""Index of the VMIs whose guest may run, also without a Pod, by their claims."""


def claims_of_granted_vmi(partial: PartialObject) -> Iterable[str]:
    """Return the values of a VMI in BY_GRANTED_CLAIM."""
    claims = claims_of_vmi(partial)  # most VMIs have none, and that is found without decoding them
    return claims if claims and _is_granted(status_of(partial.raw)) else ()


class ClaimWriters:
    def __init__(self, vmis: ReadYourWritesCache, pods: ReadYourWritesCache) -> None:
        self._vmis = vmis
        self._pods = pods
        self._creating: dict[Key, str] = {}
        """UIDs of the VMIs whose Pod may have been created, and is in no cache."""

    def forget(self, key: Key) -> None:
        """Drop what is kept of a VMI that is gone."""
        self._creating.pop(key, None)

    def find(self, vmi: VirtualMachineInstance, claims: Claims) -> Mapping[str, ClaimWriter]:
        """Return another writer of each block device that has one, by claim: one that goes first, if there is one.

        vmi: not granted the start. Only what the caches have.
        """
        found = {claim: list(self._writers(vmi, claim)) for claim in exclusive_claims(vmi.spec, claims)}
        return {claim: min(writers, key=_rank) for claim, writers in found.items() if writers}

    @contextmanager
    def reserve(self, vmi: VirtualMachineInstance, claims: Claims) -> Iterator[None]:
        """Hold the claims of a VMI while its Pod is created. Conflict: another VMI has one of them meanwhile.

        The reservation stays while it is unknown whether the create had an effect.
        """
        exclusive = exclusive_claims(vmi.spec, claims)
        if not exclusive:
            yield
            return
        for claim in exclusive:
            others = (*(writer.vmi for writer in self._writers(vmi, claim)), *self._creators(vmi, claim))
            if others:
                text = f"cannot start VirtualMachineInstance {vmi.metadata.key}: {others[0]} starts on claim {claim}"
                raise Conflict(text)
        self._creating[vmi.metadata.key] = vmi.metadata.uid
        try:
            yield
        except Unavailable:
            raise
        except ApiError:
            self._creating.pop(vmi.metadata.key, None)
            raise
        self._creating.pop(vmi.metadata.key, None)

    def _creators(self, vmi: VirtualMachineInstance, claim: str) -> Iterator[Key]:
        """Return the VMIs whose create is under way or lost."""
        for key, uid in self._creating.items():
            other = self._read(key) if key.namespace == vmi.metadata.namespace else None
            if other is not None and other.metadata.uid == uid and _is_rival(vmi, other, claim):
                yield key

    def _writers(self, vmi: VirtualMachineInstance, claim: str) -> Iterator[ClaimWriter]:
        """Return the other writers. Only VMIs with a Pod or a grant are read: any number may wait for the claim."""
        value = f"{vmi.metadata.namespace}/{claim}"
        waiting = set()
        for pod in self._launchers(value, claim):
            if is_controlled(pod, vmi):
                continue
            owner = None if pod.vmi_key is None else self._read(pod.vmi_key)
            if owner is None or not is_controlled(pod, owner):
                yield from (ClaimWriter(key, orphan=pod.metadata.name) for key in vmis_named(pod.metadata))
            elif pod.metadata.name not in former_pod_names(owner):
                waiting.add(owner.metadata.key)
        for key in {*waiting, *_indexed(self._vmis, BY_GRANTED_CLAIM, value, claims_of_granted_vmi)}:
            other = self._read(key)
            if other is not None and _is_rival(vmi, other, claim):
                yield ClaimWriter(key, gives_way=not _is_granted(other.status) and vmi.metadata.key < key)

    def _launchers(self, value: str, claim: str) -> Iterator[Pod]:
        """Return the launcher Pods that may write to a claim. value: the claim's in BY_CLAIM."""
        for key in _indexed(self._pods, BY_CLAIM, value, claims_of_pod):
            raw = self._pods.get(key)
            pod = None if raw is None else decode(raw, Pod)
            if pod is not None and not pod.is_over and claim in pod.written_claims:
                yield pod

    def _read(self, key: Key) -> VirtualMachineInstance | None:
        """Return a VMI. Nothing starts one that cannot be read; a Pod of it counts as an orphan."""
        return readable_vmi(self._vmis.get(key))


def _indexed(
    cache: ReadYourWritesCache, index: str, value: str, values_of: Callable[[PartialObject], Iterable[str]]
) -> Iterator[Key]:
    """Return the keys of an index, and of answers that the cache does not have yet. values_of: the index's function."""
    yield from cache.indexed(index, value)
    for key in cache.unconfirmed():
        raw = cache.get(key)
        if raw is not None and value in values_of(read_partial(raw)):
            yield key


def _is_granted(status: VirtualMachineInstanceStatus | StatusView) -> bool:
    return bool(status.active_pods) or status.phase in AFTER_HAND_OVER


def _rank(writer: ClaimWriter) -> tuple[bool, Key, str]:
    return writer.gives_way, writer.vmi, writer.orphan


def _is_rival(vmi: VirtualMachineInstance, other: VirtualMachineInstance, claim: str) -> bool:
    """Tell whether another VMI of the namespace that has not ended must not have the claim at the same time."""
    is_other = vmi.metadata.uid != other.metadata.uid
    return is_other and not is_final(other.status.phase) and excludes(vmi.spec, other.spec, claim)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which other instances write to the block devices of an instance: reads the caches, and keeps the creates under way.

An instance counts from the creation of its first Pod until it is final: its guest may run. A create whose answer is
still out, or was lost, is in no cache; `reserve` keeps it, so that of two instances that start at once one waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from controlplane.api.objects.claim import Claims
from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.phase import AFTER_HAND_OVER, is_final
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError, Conflict, Unavailable
from controlplane.engine.ports import Cache
from controlplane.virt_controller.storage.claims import BY_CLAIM
from controlplane.virt_controller.storage.written_claims import excludes, exclusive_claims


class ClaimWriters:
    def __init__(self, vmis: Cache, pods: Cache) -> None:
        self._vmis = vmis
        self._pods = pods
        self._creating: dict[Key, str] = {}
        """UIDs of the VMIs whose Pod may exist although no cache has it."""

    def forget(self, key: Key) -> None:
        """Drop what is kept of a VMI that is gone."""
        self._creating.pop(key, None)

    def find(self, vmi: VirtualMachineInstance, claims: Claims) -> Mapping[str, Key]:
        """Return the other writer of each block device that has one, by claim. Only what the caches have."""
        return dict(self._others(vmi, claims, counts_creating=False))

    @contextmanager
    def reserve(self, vmi: VirtualMachineInstance, claims: Claims) -> Iterator[None]:
        """Let nobody else create a Pod for the VMI's block devices meanwhile. Conflict: somebody writes to one.

        The reservation stays while it is unknown whether the create had an effect.
        """
        if not exclusive_claims(vmi.spec, claims):
            yield
            return
        for claim, other in self._others(vmi, claims, counts_creating=True):
            raise Conflict(f"cannot start VirtualMachineInstance {vmi.metadata.key}: {other} starts on claim {claim}")
        self._creating[vmi.metadata.key] = vmi.metadata.uid
        try:
            yield
        except Unavailable:
            raise
        except ApiError:
            self._creating.pop(vmi.metadata.key, None)
            raise
        self._creating.pop(vmi.metadata.key, None)

    def _others(
        self, vmi: VirtualMachineInstance, claims: Claims, *, counts_creating: bool
    ) -> Iterator[tuple[str, Key]]:
        for claim in exclusive_claims(vmi.spec, claims):
            for key in sorted(self._vmis.indexed(BY_CLAIM, f"{vmi.metadata.namespace}/{claim}")):
                other = self._read(key)
                if other is None or other.metadata.uid == vmi.metadata.uid:
                    continue
                if not excludes(vmi.spec, other.spec, claim):
                    continue
                is_creating = counts_creating and self._creating.get(key) == other.metadata.uid
                if not is_final(other.status.phase) and (is_creating or self._may_run(other)):
                    yield claim, key
                    break

    def _read(self, key: Key) -> VirtualMachineInstance | None:
        raw = self._vmis.get(key)
        try:
            return None if raw is None else decode_vmi(raw)
        except DecodeError:
            return None  # it has no Pod: nothing starts what cannot be read

    def _may_run(self, vmi: VirtualMachineInstance) -> bool:
        if vmi.status.active_pods or vmi.status.phase in AFTER_HAND_OVER:
            return True
        raws = map(self._pods.get, self._pods.indexed("owner", vmi.metadata.uid))
        return any(not decode(raw, Pod).is_over for raw in raws if raw is not None)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMIs whose launcher is outdated, or that have to be migrated for another reason. No I/O.

It follows the cache, including own writes: a reconcile must not read ten thousand VMIs to find a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.workload_update.instance_view import InstanceView, read_instance

MoveReason = Callable[[VirtualMachineInstance, Pod | None], str | None]
"""Returns why a running VMI has to be migrated; None if it does not. Pure."""


class CandidateCache:
    def __init__(
        self,
        vmis: ReadYourWritesCache,
        pods: ReadYourWritesCache,
        launcher_image: str,
        reasons: Sequence[MoveReason] = (),
    ) -> None:
        """reasons: called in this order for each running VMI whose launcher is up to date."""
        self._vmis = vmis
        self._pods = pods
        self._launcher_image = launcher_image
        self._reasons = reasons
        self._cached: dict[Key, tuple[bytes, InstanceView]] = {}
        self._enqueue: Callable[[], None] = lambda: None
        vmis.subscribe(self._changed)
        pods.subscribe(self._pod_changed)

    def __call__(self) -> list[InstanceView]:
        """List the candidates, own writes included."""
        for key, (cached, _unused) in list(self._cached.items()):
            raw = self._vmis.get(key)
            if raw is not cached:
                self._keep(key, raw)
        return [instance for _unused, instance in self._cached.values()]

    def instance_of(self, key: Key) -> InstanceView | None:
        """Read any VMI; None if it is missing or unreadable."""
        raw = self._vmis.get(key)
        return None if raw is None else self._read(raw)

    def enqueue_by(self, enqueue: Callable[[], None]) -> None:
        """Set the callback for each change of a candidate."""
        self._enqueue = enqueue

    @property
    def outdated(self) -> int:
        """How many VMIs run in another launcher. Safe to call in another thread."""
        return count_outdated([instance for _unused, instance in list(self._cached.values())])

    def pod_of(self, instance: InstanceView) -> Pod | None:
        """Return the Pod that has the VMI's guest."""
        return self._pod(instance.uid, instance.pod)

    def _changed(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        was_candidate = key in self._cached
        self._keep(key, after)
        if was_candidate or key in self._cached:
            self._enqueue()

    def _pod_changed(self, _key: Key, before: bytes | None, after: bytes | None) -> None:
        """Read a VMI again when the cache gets its Pod."""
        try:
            vmi = None if before is not None or after is None else decode(after, Pod).vmi_key
        except DecodeError:
            return
        if vmi is not None and self._reasons:
            self._changed(vmi, None, self._vmis.get(vmi))

    def _keep(self, key: Key, raw: bytes | None) -> None:
        instance = None if raw is None else self._read(raw)
        if raw is not None and instance is not None and _is_candidate(instance):
            self._cached[key] = raw, instance
        else:
            self._cached.pop(key, None)

    def _read(self, raw: bytes) -> InstanceView | None:
        try:
            instance = read_instance(raw, self._launcher_image)
            if self._reasons and instance.is_running and not instance.is_outdated:
                instance = replace(instance, reason=self._find_reason(decode_vmi(raw), instance))
        except (msgspec.DecodeError, UnicodeError, DecodeError):  # the VMI controller reports that
            return None
        return instance

    def _find_reason(self, vmi: VirtualMachineInstance, instance: InstanceView) -> str:
        pod = self.pod_of(instance)
        return next((text for find_reason in self._reasons if (text := find_reason(vmi, pod))), "")

    def _pod(self, owner: str, uid: str) -> Pod | None:
        for raw in map(self._pods.get, self._pods.indexed("owner", owner)):
            pod = None if raw is None else decode(raw, Pod)
            if pod is not None and pod.uid == uid:
                return pod
        return None


def _is_candidate(instance: InstanceView) -> bool:
    return instance.is_outdated or instance.is_labelled or bool(instance.reason)


def count_outdated(instances: Sequence[InstanceView]) -> int:
    return sum(instance.is_outdated and instance.is_running for instance in instances)

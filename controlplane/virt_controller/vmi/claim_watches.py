# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What enqueues a VMI because of another one on the same claim: it may wait for a block device, or have to give way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controlplane.api.objects.decode import decode
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.ports import Cache
from controlplane.kube.cache import read_partial
from controlplane.virt_controller.changes import controlling_vmis, status_of
from controlplane.virt_controller.controller import Watch
from controlplane.virt_controller.storage.claims import BY_CLAIM, DATA_VOLUMES, claims_of_pod, claims_of_vmi


def claim_watches(vmis: Cache, pods: Cache) -> tuple[Watch, Watch]:
    """Enqueue all VMIs of a claim when a VMI or a Pod with it ends, and otherwise those of them that have a Pod."""

    def users(claims: Iterable[str]) -> Iterator[Key]:
        for claim in claims:
            if claim != DATA_VOLUMES:
                yield from list(vmis.indexed(BY_CLAIM, claim))

    def holders(claims: Iterable[str]) -> Iterator[Key]:
        for claim in claims:
            for key in list(pods.indexed(BY_CLAIM, claim)):
                raw = pods.get(key)
                yield from controlling_vmis(key, raw) if raw is not None else ()

    def on_vmi(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        claims = () if before is None else claims_of_vmi(read_partial(before))
        if before is None or not claims:
            return
        old, new = status_of(before), None if after is None else status_of(after)
        if is_final(old.phase):
            return
        if after is None or new is None or is_final(new.phase) or _uid(before) != _uid(after):
            yield from (other for other in users(claims) if other != key)
        elif (old.phase, old.attempt) != (new.phase, new.attempt):  # a grant, or an attempt that is given up
            yield from (other for other in holders(claims) if other != key)

    def on_pod(_key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if before is None:
            yield from () if after is None else holders(claims_of_pod(read_partial(after)))
            return
        claims = claims_of_pod(read_partial(before))
        if claims and _is_over(after) and not _is_over(before):
            yield from users(claims)

    return Watch(VIRTUAL_MACHINE_INSTANCE, on_vmi), Watch(POD, on_pod)


def _uid(raw: bytes) -> str:
    """Return the UID: a list may replace an object by the next one of its name."""
    return read_partial(raw).metadata.uid


def _is_over(raw: bytes | None) -> bool:
    return raw is None or decode(raw, Pod).is_over

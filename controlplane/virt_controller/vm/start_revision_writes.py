# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the ControllerRevision of a VM's start, and deletes the former one. It decides nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from controlplane.api.objects.resources import CONTROLLER_REVISION, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.start_revision import build_revision, revision_name
from controlplane.engine.errors import AlreadyExists, NotFound
from controlplane.engine.ports import Api


async def record_start(api: Api, vm: VirtualMachine, spec: dict[str, Any]) -> None:
    """Create the revision of a start, and delete that of the last start. spec: the VM's, as stored.

    Before the VMI exists: a pass that fails is repeated as a whole.
    """
    with suppress(AlreadyExists):  # an earlier start or pass has written it
        await api.create(CONTROLLER_REVISION, vm.metadata.namespace, build_revision(vm, spec))
    former, current = vm.status.start_revision_name, revision_name(vm.metadata.uid, vm.metadata.generation)
    if former not in ("", current):
        with suppress(NotFound):
            await _delete_own(api, vm, Key(vm.metadata.namespace, former))


async def _delete_own(api: Api, vm: VirtualMachine, key: Key) -> None:
    meta = (await api.get(CONTROLLER_REVISION, key))["metadata"]
    # An adopted instance names the revision of its former VM.
    if any(owner.get("uid") == vm.metadata.uid for owner in meta.get("ownerReferences") or ()):
        await api.delete(CONTROLLER_REVISION, key, uid=meta["uid"])

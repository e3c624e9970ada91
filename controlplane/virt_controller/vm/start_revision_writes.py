# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the ControllerRevision of a VM's start, and deletes the former one. It decides nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from controlplane.api.objects.resources import CONTROLLER_REVISION, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.start_revision import build_revision, revision_name
from controlplane.engine.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    WebhookFailed,
)
from controlplane.engine.ports import Api

_REFUSALS = (Conflict, Forbidden, Invalid, NotFound, Throttled, WebhookFailed)
"""Errors of a create after which the object certainly does not exist."""


@asynccontextmanager
async def recorded_start(api: Api, vm: VirtualMachine, spec: dict[str, Any]) -> AsyncIterator[None]:
    """Delete the revision of the last start, and create that of this start; in the block, create the VMI.

    spec: the VM's, as stored. A pass that fails is repeated as a whole. If the create of the VMI is refused, the
    revision that this pass created is deleted again: no VMI names it, and the next pass may start another spec. If the
    result is unknown it stays, as the VMI may exist.
    """
    await _delete_former(api, vm)
    uid = await _create_revision(api, vm, spec)
    try:
        yield
    except _REFUSALS:
        if uid is not None:
            with suppress(ApiError):  # the refusal is what matters
                await api.delete(CONTROLLER_REVISION, _current(vm), uid=uid)
        raise


async def _create_revision(api: Api, vm: VirtualMachine, spec: dict[str, Any]) -> str | None:
    """Return the UID of the revision; None if an earlier start or pass has created it."""
    try:
        created = await api.create(CONTROLLER_REVISION, vm.metadata.namespace, build_revision(vm, spec))
    except AlreadyExists:
        return None
    uid: str = created["metadata"]["uid"]
    return uid


async def _delete_former(api: Api, vm: VirtualMachine) -> None:
    former = Key(vm.metadata.namespace, vm.status.start_revision_name)
    if former.name and former != _current(vm):
        with suppress(NotFound):
            await _delete_own(api, vm, former)


def _current(vm: VirtualMachine) -> Key:
    return Key(vm.metadata.namespace, revision_name(vm.metadata.uid, vm.metadata.generation))


async def _delete_own(api: Api, vm: VirtualMachine, key: Key) -> None:
    meta = (await api.get(CONTROLLER_REVISION, key))["metadata"]
    # An adopted instance names the revision of its former VM.
    if any(owner.get("uid") == vm.metadata.uid for owner in meta.get("ownerReferences") or ()):
        await api.delete(CONTROLLER_REVISION, key, uid=meta["uid"])

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to subresources: authorize the caller, then act with virt-api's own permissions.

start, stop and restart read from the API server, decide (lifecycle) and write; the others have modules of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from controlplane.api.admission.verdict import Settings
from controlplane.api.objects.decode import DecodeError, decode_vm, decode_vmi
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError, Conflict, NotFound
from controlplane.kube.access_review import User, review_access
from controlplane.kube.client import Client
from controlplane.virt_api.concurrency import ConcurrencyLimit, WorkerThreads
from controlplane.virt_api.http.response import Response, accepted, api_failure, conflict, failure, not_found
from controlplane.virt_api.http.routes import INQUIRIES, LIFECYCLE, POWER, Lifecycle, SubresourceRoute
from controlplane.virt_api.subresources.cancel_evacuation import cancel_evacuation
from controlplane.virt_api.subresources.expansion import expand, expand_body
from controlplane.virt_api.subresources.guest_info import get_guest_info
from controlplane.virt_api.subresources.lifecycle import (
    NotImplementedStrategyError,
    PatchInstance,
    PatchSpec,
    PatchStatus,
    RefusedError,
    Write,
    decide_restart,
    decide_start,
    decide_stop,
)
from controlplane.virt_api.subresources.migrate import migrate
from controlplane.virt_api.subresources.options import (
    BadOptionsError,
    parse_evacuation,
    parse_migrate,
    parse_power,
    parse_restart,
    parse_start,
    parse_stop,
)
from controlplane.virt_api.subresources.power_requests import PowerRequests
from controlplane.virt_api.subresources.screenshot import Screenshots

log = logging.getLogger(__name__)

ATTEMPTS = 4
"""Decisions per request. A write may conflict with a controller's status write; then virt-api decides again."""

MAX_CONCURRENT = 8
"""Requests that use the API server at once: half of our connections to it."""
EXPANSION_THREADS = 1
"""Threads that validate VMs to expand; separate from those of reviews, so that admission never waits for them."""


@dataclass(frozen=True, slots=True)
class LifecycleRequest:
    """A decision with its options: what to write, given VM and VMI."""

    decide: Callable[[VirtualMachine, VirtualMachineInstance | None], tuple[Write, ...]]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Subresources:
    """Responds to requests to subresources."""

    client: Client
    power: PowerRequests
    screenshots: Screenshots
    settings: Callable[[], Settings]
    """The current settings of admission."""
    threads: WorkerThreads
    """EXPANSION_THREADS of them."""
    limit: ConcurrencyLimit
    """MAX_CONCURRENT slots."""

    async def answer(self, route: SubresourceRoute, user: User, body: bytes, until_written: ExitStack) -> Response:
        """Respond to one request. Never raises ApiError. Raises BusyError when no slot or thread becomes free.

        until_written: is closed when the response is written.
        """
        access = route.access
        try:
            async with self.limit.slot():
                decision = await review_access(self.client, user, access)
            if not decision.allowed:
                return forbidden(route, user)
            action = route.row.action
            if action == "unbuilt":
                name = f"{access.resource}/{access.subresource}"
                return failure(501, f"{name} is not implemented by this control plane")
            if action in LIFECYCLE:
                request = _parse(action, body)
                async with self.limit.slot():
                    return await self._change_lifecycle(route, user, request)
            return await self._act(route, user, body, until_written)
        except BadOptionsError as error:
            return failure(400, str(error))
        except ApiError as error:
            log.warning("cannot respond", extra={"path": access.subresource, "because": error})
            return api_failure(error)

    async def _act(self, route: SubresourceRoute, user: User, body: bytes, until_written: ExitStack) -> Response:
        key, action = Key(route.access.namespace, route.access.name), route.row.action
        if action in INQUIRIES:
            return await get_guest_info(self.client, self.power.handlers, key, action)
        if action == "screenshot":
            return await self.screenshots.get(key, user, until_written)
        if action in POWER:
            return await self.power.execute(key, action, parse_power(action, body), user)
        if action in ("expand-spec", "expand-vm-spec"):
            return await self._expand(key, body if action == "expand-vm-spec" else None)
        if action == "migrate":
            options = parse_migrate(body)
            async with self.limit.slot():
                return await migrate(self.client, key, options, user)
        drain_taint_key = self.settings().configuration.migrations.node_drain_taint_key
        return await cancel_evacuation(self.client, key, parse_evacuation(body), user, drain_taint_key)

    async def _expand(self, key: Key, body: bytes | None) -> Response:
        """Expand the VM in a body, or the VM of that name."""
        if body is None:
            return await expand(self.client, key)
        return await self.threads.run(partial(expand_body, body, key.namespace, self.settings()))

    async def _change_lifecycle(self, route: SubresourceRoute, user: User, request: LifecycleRequest) -> Response:
        key = Key(route.access.namespace, route.access.name)
        kind = VIRTUAL_MACHINE.kind.lower()
        for _unused in range(ATTEMPTS):
            try:
                # Read the VM first: the write requires its version, so the VMI is at least as new.
                vm, vmi = await self._read_vm(key), await self._read_vmi(key)
                for write in request.decide(vm, vmi):
                    await self._write(key, vm, write, dry_run=request.dry_run)
            except NotFound:
                return not_found(kind, key.name)
            except RefusedError as error:
                return conflict(kind, key.name, str(error))
            except NotImplementedStrategyError as error:
                return failure(501, f"{kind} {key}: {error}")
            except DecodeError as error:
                return failure(422, f"{kind} {key} cannot be read: {error}")
            except Conflict:
                continue
            extra = {"key": key, "action": route.row.action, "user": user.name, "dry_run": request.dry_run}
            log.info("carried out", extra=extra)
            return accepted()
        return conflict(kind, key.name, "the object keeps changing; please try again")

    async def _read_vm(self, key: Key) -> VirtualMachine:
        return decode_vm(await self.client.get(VIRTUAL_MACHINE, key))

    async def _read_vmi(self, key: Key) -> VirtualMachineInstance | None:
        try:
            return decode_vmi(await self.client.get(VIRTUAL_MACHINE_INSTANCE, key))
        except NotFound:
            return None

    async def _write(self, key: Key, vm: VirtualMachine, write: Write, *, dry_run: bool) -> None:
        version = vm.metadata.resource_version
        if isinstance(write, PatchInstance):
            try:
                await self.client.patch(VIRTUAL_MACHINE_INSTANCE, key, write.patch, uid=write.uid, dry_run=dry_run)
            except NotFound as error:
                raise Conflict("the VMI was deleted meanwhile") from error
        elif isinstance(write, PatchSpec):
            await self.client.patch(VIRTUAL_MACHINE, key, write.patch, resource_version=version, dry_run=dry_run)
        elif isinstance(write, PatchStatus):
            await self.client.patch(
                VIRTUAL_MACHINE, key, write.patch, subresource="status", resource_version=version, dry_run=dry_run
            )


def _parse(action: Lifecycle, body: bytes) -> LifecycleRequest:
    if action == "start":
        start = parse_start(body)
        return LifecycleRequest(lambda vm, vmi: decide_start(vm, vmi, start), start.dry_run)
    if action == "stop":
        stop = parse_stop(body)
        return LifecycleRequest(lambda vm, vmi: decide_stop(vm, vmi, stop), stop.dry_run)
    restart = parse_restart(body)
    return LifecycleRequest(lambda vm, vmi: decide_restart(vm, vmi, restart), restart.dry_run)


def forbidden(route: SubresourceRoute, user: User) -> Response:
    """Respond 403 in Kubernetes' words."""
    access = route.access
    name = "/".join(filter(None, (access.resource, access.subresource)))
    message = (
        f'{access.resource}.{access.group} "{access.name}" is forbidden: User "{user.name}" cannot {access.verb} '
        f'resource "{name}" in API group "{access.group}" '
        f'in the namespace "{access.namespace}"'
    )
    return failure(403, message, details={"name": access.name, "group": access.group, "kind": access.resource})

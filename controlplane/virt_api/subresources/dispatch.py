# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subresources: ask whether the caller may, read from the quorum, decide, write. Decisions are in lifecycle."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import get_args

from controlplane.api.admission.verdict import Settings
from controlplane.api.objects.decode import DecodeError, decode_vm, decode_vmi
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError, Conflict, NotFound
from controlplane.kube.access_review import User, review_access
from controlplane.kube.client import Client
from controlplane.links.handler import About, Verb
from controlplane.virt_api.concurrency import Judges, Places
from controlplane.virt_api.http.response import Answer, accepted, api_failure, conflict, failure, not_found
from controlplane.virt_api.http.routes import ToSubresource
from controlplane.virt_api.subresources.cancel_evacuation import cancel_evacuation
from controlplane.virt_api.subresources.expansion import expand, expand_given
from controlplane.virt_api.subresources.guest_info import inquire
from controlplane.virt_api.subresources.lifecycle import (
    NotBuiltError,
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
from controlplane.virt_api.subresources.power_requests import Guests

log = logging.getLogger(__name__)

# A decision meets a status write of a controller now and then; it is made anew on what is there by then.
ATTEMPTS = 4

AT_ONCE = 8
"""Requests that ask the API server at once, by turns of namespaces: half of the connections that we have to it."""
EXPANDING = 1
"""Threads that judge machines to expand: not those of reviews, so that admission waits for none of them."""

POWER: tuple[Verb, ...] = get_args(Verb)
ABOUT: tuple[About, ...] = get_args(About)
DONE_AT_ONCE = frozenset({*POWER, *ABOUT, "migrate", "cancel-evacuation", "expand-spec", "expand-vm-spec"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A decision with its options: what to write, given VM and instance."""

    decide: Callable[[VirtualMachine, VirtualMachineInstance | None], tuple[Write, ...]]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Subresources:
    """Answers requests to subresources, with the rights of our own account after the caller's were asked for."""

    client: Client
    guests: Guests
    settings: Callable[[], Settings]
    """Of admission."""
    judges: Judges
    """Of machines to expand."""
    places: Places
    """AT_ONCE."""

    async def answer(self, route: ToSubresource, user: User, body: bytes) -> Answer:
        """Answer one request. Never raises ApiError; BusyError where there is no turn."""
        access = route.access
        try:
            # By the namespace of the path: no API server brings it here for whoever may not ask this of it.
            async with self.places.turn(access.namespace):
                decision = await review_access(self.client, user, access)
            if not decision.allowed:
                return _denied(route, user)
            action = route.row.action
            if action == "unbuilt":
                what = f"{access.resource}/{access.subresource}"
                return failure(501, f"{what} is not implemented by this control plane")
            if action in DONE_AT_ONCE:
                return await self._do(route, user, body)
            asked = _parse(action, body)
            async with self.places.turn(access.namespace):
                return await self._act(route, user, asked)
        except BadOptionsError as error:
            return failure(400, str(error))
        except ApiError as error:
            log.warning("cannot answer", extra={"path": access.subresource, "because": error})
            return api_failure(error)

    async def _do(self, route: ToSubresource, user: User, body: bytes) -> Answer:
        """Do what is done, or made for a controller, by one look and one write."""
        key, action = Key(route.access.namespace, route.access.name), route.row.action
        if action in ABOUT:
            return await inquire(self.client, self.guests.handlers, key, action)
        if action == "expand-spec":
            return await expand(self.client, key)
        if action == "expand-vm-spec":
            verdict = partial(expand_given, body, key.namespace, self.settings())
            # By namespace: accounts can be made without end by whoever may make one.
            return await self.judges.judge(key.namespace, verdict)
        if action in POWER:
            return await self.guests.carry_out(key, action, parse_power(action, body), user)
        if action == "migrate":
            options = parse_migrate(body)
            async with self.places.turn(key.namespace):
                return await migrate(self.client, key, options, user)
        return await cancel_evacuation(self.client, key, parse_evacuation(body), user)

    async def _act(self, route: ToSubresource, user: User, asked: Asked) -> Answer:
        key = Key(route.access.namespace, route.access.name)
        kind = VIRTUAL_MACHINE.kind.lower()
        for _unused in range(ATTEMPTS):
            try:
                vm, vmi = await self._read_vm(key), await self._read_vmi(key)
                for write in asked.decide(vm, vmi):
                    await self._write(key, vm, write, dry_run=asked.dry_run)
            except NotFound:
                return not_found(kind, key.name)
            except RefusedError as error:
                return conflict(kind, key.name, str(error))
            except NotBuiltError as error:
                return failure(501, f"{kind} {key}: {error}")
            except DecodeError as error:
                return failure(422, f"{kind} {key} cannot be read: {error}")
            except Conflict:
                continue
            extra = {"key": key, "action": route.row.action, "user": user.name, "dry_run": asked.dry_run}
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
                raise Conflict("the instance is gone by now") from error
        elif isinstance(write, PatchSpec):
            await self.client.patch(VIRTUAL_MACHINE, key, write.patch, resource_version=version, dry_run=dry_run)
        elif isinstance(write, PatchStatus):
            await self.client.patch(
                VIRTUAL_MACHINE, key, write.patch, subresource="status", resource_version=version, dry_run=dry_run
            )


def _parse(action: str, body: bytes) -> Asked:
    if action == "start":
        start = parse_start(body)
        return Asked(lambda vm, vmi: decide_start(vm, vmi, start), start.dry_run)
    if action == "stop":
        stop = parse_stop(body)
        return Asked(lambda vm, vmi: decide_stop(vm, vmi, stop), stop.dry_run)
    restart = parse_restart(body)
    return Asked(lambda vm, vmi: decide_restart(vm, vmi, restart), restart.dry_run)


def _denied(route: ToSubresource, user: User) -> Answer:
    access = route.access
    what = "/".join(filter(None, (access.resource, access.subresource)))
    message = (
        f'{access.resource}.{access.group} "{access.name}" is forbidden: User "{user.name}" cannot {access.verb} '
        f'resource "{what}" in API group "{access.group}" '
        f'in the namespace "{access.namespace}"'
    )
    return failure(403, message, details={"name": access.name, "group": access.group, "kind": access.resource})

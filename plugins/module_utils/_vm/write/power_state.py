# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a VM, or the guest of an instance, into a power state with at most one request."""

from __future__ import annotations

from typing import Any

from ..._client.api import Api
from ..._client.errors import ApiError, BadArgument, NotFound, VirtError
from ...kubevirt_api import names
from ...kubevirt_api.desired import run_strategy
from ...kubevirt_api.run_strategies import SELF_STARTING
from .. import kinds, unread_instance
from ..request.vm_request import Terms, VmRequest
from . import power
from .guest_power import OPERATIONS
from .guest_power import decide as decide_operation
from .outcome import Interrupted, Outcome

_UNSUPPORTED = (405, 501)
"""HTTP status of a control plane that knows an operation and does not implement it."""

Object = dict[str, Any]


def check(api: Api, request: VmRequest, live: Object | None) -> None:
    """Refuse an operation on the guest of an object that does not exist."""
    if live is None and request.state in OPERATIONS:
        from .. import missing

        paused = "; start_paused=true starts it paused" if request.state == "paused" else ""
        raise BadArgument(
            f"{request.title} cannot be {request.state}: {missing.reason(api, request.namespace, request.kind)}. Only a"
            f" running guest can be {request.state}; create and start a new machine first{paused}"
        )


def ensure(api: Api, request: VmRequest, terms: Terms, done: Outcome, *, is_new: bool) -> Outcome:
    """Bring the VM into its power state. done: the outcome of the write of its declaration."""
    if done.after is None:
        return done
    try:
        if terms.check_mode and is_new:
            return _predicted(request, done)
        return _ensure(api, request, terms, done, is_new=is_new)
    except VirtError as error:
        raise Interrupted(done, error) from error


def _predicted(request: VmRequest, done: Outcome) -> Outcome:
    """Return the outcome for a VM that check mode does not create, so that a dry run has no object."""
    vm = done.after or {}
    operation = _decide(request, vm, None, is_new=True)
    if operation is None:
        return done
    return done._replace(method=operation.subresource, after=power.predicted(vm, operation))


def ensure_guest(api: Api, request: VmRequest, terms: Terms, done: Outcome, instance: Object | None) -> Outcome:
    """Bring the guest of an instance into its state. done: the outcome of the previous step."""
    try:
        operation = decide_operation(
            request.state, instance, request.unfreeze_timeout_seconds, of_vm=request.kind is kinds.VM
        )
    except power.Impossible as reason:
        if terms.check_mode:
            from . import foresee

            return foresee.impossible(request, done, str(reason))
        raise VirtError(f"{request.title} cannot be {request.state}: {reason}") from reason
    return done if operation is None else _perform(api, request, terms, done, operation)


def _ensure(api: Api, request: VmRequest, terms: Terms, done: Outcome, *, is_new: bool) -> Outcome:
    vm = done.after or {}
    instance = unread_instance.read(api, vm, request.namespace, request.name or "", terms.api_version)
    if request.state in OPERATIONS:
        return ensure_guest(api, request, terms, done, instance)
    operation = _decide(request, vm, instance, is_new=is_new)
    if operation is None:
        return done
    uid = instance["metadata"].get("uid") if instance and operation.subresource == "restart" else None
    return _perform(api, request, terms, done._replace(old_instance_uid=uid), operation)


def _decide(request: VmRequest, vm: Object, instance: Object | None, *, is_new: bool) -> power.Operation | None:
    """Return the operation to send. A new VM was created in its state, or is started by the request that follows."""
    state = "started" if is_new and request.state == "restarted" else request.state
    if is_new and (state == "stopped" or run_strategy(vm) in SELF_STARTING):
        return None
    try:
        return power.decide(state, vm, instance, request.grace_period_seconds, paused=request.start_paused)
    except power.Impossible as reason:
        raise VirtError(f"{request.title} cannot be {request.state}: {reason}") from reason


def _perform(api: Api, request: VmRequest, terms: Terms, done: Outcome, operation: power.Operation) -> Outcome:
    _send(api, request, terms, operation)
    sent = done._replace(changed=True, method=operation.subresource or "patch")
    if terms.check_mode:
        return sent._replace(after=power.predicted(done.after or {}, operation))
    try:
        resource = request.kind.resource(request.namespace, terms.api_version)
        return sent._replace(after=api.get(resource, request.name or ""))
    except VirtError as error:
        raise Interrupted(sent, error) from error


def _send(api: Api, request: VmRequest, terms: Terms, operation: power.Operation) -> None:
    name = request.name or ""
    if operation.subresource is None:
        resource = kinds.virtual_machines(request.namespace, terms.api_version)
        api.patch(resource, name, operation.body, dry_run=terms.check_mode)
        return
    if terms.check_mode and not operation.has_dry_run:
        return
    dry_run = {"dryRun": ["All"]} if terms.check_mode else {}
    resource = kinds.operations(kinds.VMI if operation.of_instance else kinds.VM, request.namespace)
    try:
        api.put(resource, name, operation.subresource, {**operation.body, **dry_run})
    except ApiError as error:
        reason = _unsupported(error)
        if reason is None:
            raise
        raise VirtError(f"cannot {operation.subresource} {resource.title(name)}: {reason}") from error


def _unsupported(error: ApiError) -> str | None:
    """Return why the cluster cannot do the operation at all, None if it refuses it for this object."""
    if error.status in _UNSUPPORTED:
        return f"the control plane of this cluster does not do that ({error.message.partition(': ')[2]})"
    if not isinstance(error, NotFound):
        return None
    if error.facts.get("server_reason"):
        return "it is gone"
    return (
        f"{names.SUBRESOURCES_GROUP} is not served (is virt-api running?), or the control plane of this cluster is too"
        " old to know this operation"
    )

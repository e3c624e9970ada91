# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one VM, or the guest of one instance, into a power state: what is declared first, then one request."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import ApiError, BadArgument, NotFound, VirtError
from ..kubevirt_api import names
from ..kubevirt_api.asked import run_strategy
from ..kubevirt_api.run_strategies import SELF_STARTING
from . import cluster, power
from .instance_power import OPERATIONS
from .instance_power import decide as decide_operation
from .request import Terms, VmRequest
from .service import Interrupted, Outcome, ensure_present, read

_NOT_BUILT = (405, 501)
"""How a control plane answers that knows an operation and does not do it."""

Object = dict[str, Any]


def powered(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Bring the VM into the power state of the request; `live` is how it is."""
    if live is None and request.state in OPERATIONS:
        raise never_started(request)
    done = ensure_present(api, request, terms, live)
    if done.after is None:
        return done
    try:
        if terms.check_mode and live is None:
            return _foreseen(request, done)
        return _moved(api, request, terms, done, is_new=live is None)
    except VirtError as error:
        raise Interrupted(done, error) from error


def _foreseen(request: VmRequest, done: Outcome) -> Outcome:
    """Return what becomes of a VM that would be created: nobody can be asked to start it yet."""
    vm = done.after or {}
    ask = _decided(request, vm, None, is_new=True)
    return done if ask is None else done._replace(method=ask.subresource, after=power.foreseen(vm, ask))


def never_started(request: VmRequest) -> BadArgument:
    """Return the error for an operation on a guest that there is not."""
    return BadArgument(
        f"{request.title} does not exist, and only a guest that runs can be {request.state}; create and start it first"
        + (" (start_paused=true has it begin paused)" if request.state == "paused" else "")
    )


def operated(api: Api, request: VmRequest, terms: Terms, done: Outcome, instance: Object | None) -> Outcome:
    """Bring the guest of an instance into the state of the request; `done` is what was done before."""
    try:
        timeout, of_vm = request.unfreeze_timeout_seconds, request.kind is cluster.VM
        ask = decide_operation(request.state, instance, timeout, of_vm=of_vm)
    except power.Impossible as why:
        raise VirtError(f"{request.title} cannot be {request.state}: {why}") from why
    return done if ask is None else _asked(api, request, terms, done, ask)


def _moved(api: Api, request: VmRequest, terms: Terms, done: Outcome, *, is_new: bool) -> Outcome:
    vm = done.after or {}
    instance = api.get(cluster.instances(request.namespace, terms.api_version), request.name or "")
    if request.state in OPERATIONS:
        return operated(api, request, terms, done, instance)
    ask = _decided(request, vm, instance, is_new=is_new)
    if ask is None:
        return done
    uid = instance["metadata"].get("uid") if instance and ask.subresource == "restart" else None
    return _asked(api, request, terms, done._replace(old_instance_uid=uid), ask)


def _decided(request: VmRequest, vm: Object, instance: Object | None, *, is_new: bool) -> power.Ask | None:
    """Return what to ask for. One that was created a moment ago was created in its state, or for a start to follow."""
    state = "started" if is_new and request.state == "restarted" else request.state
    if is_new and (state == "stopped" or run_strategy(vm) in SELF_STARTING):
        return None
    try:
        return power.decide(state, vm, instance, request.grace_period_seconds, paused=request.start_paused)
    except power.Impossible as why:
        raise VirtError(f"{request.title} cannot be {request.state}: {why}") from why


def _asked(api: Api, request: VmRequest, terms: Terms, done: Outcome, ask: power.Ask) -> Outcome:
    _ask(api, request, terms, ask)
    moved = done._replace(changed=True, method=ask.subresource or "patch")
    if terms.check_mode:
        return moved._replace(after=power.foreseen(done.after or {}, ask))
    try:
        return moved._replace(after=read(api, request, terms))
    except VirtError as error:
        raise Interrupted(moved, error) from error


def _ask(api: Api, request: VmRequest, terms: Terms, ask: power.Ask) -> None:
    name = request.name or ""
    if ask.subresource is None:
        resource = cluster.virtual_machines(request.namespace, terms.api_version)
        api.patch(resource, name, ask.body, dry_run=terms.check_mode)
        return
    if terms.check_mode and not ask.has_dry_run:
        return
    dry_run = {"dryRun": ["All"]} if terms.check_mode else {}
    operations = cluster.operations(cluster.VMI if ask.of_instance else cluster.VM, request.namespace)
    try:
        api.put(operations, name, ask.subresource, {**ask.body, **dry_run})
    except ApiError as error:
        why = _why_not(error)
        if why is None:
            raise
        raise VirtError(f"cannot {ask.subresource} {operations.title(name)}: {why}") from error


def _why_not(error: ApiError) -> str | None:
    """Return why the operation is not to be had here at all, None if the refusal is about this object."""
    if error.status in _NOT_BUILT:
        return f"the control plane of this cluster does not do that ({error.message.partition(': ')[2]})"
    if not isinstance(error, NotFound):
        return None
    if error.facts.get("server_reason"):
        return "it is gone"
    return (
        f"{names.SUBRESOURCES_GROUP} is not served (is virt-api running?), or the control plane of this cluster is too"
        " old to know this operation"
    )

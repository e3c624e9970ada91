# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one VirtualMachineInstance into its state. guest_power.py decides about power states.

The spec of an instance cannot be changed. A task that declares another one is refused; with `force` the instance is
deleted and created again.
"""

from __future__ import annotations

from typing import Any

from ..._client.api import Api
from ..._client.errors import VirtError
from ...kubevirt_api.desired import is_deleting
from ...kubevirt_api.predicates import is_final, phase
from .. import kinds
from ..merge import compare
from ..request.manifest import Declaration, over_live, without_defaults
from ..request.vm_request import Terms, VmRequest
from . import power_state, removal, send, update
from .guest_power import OPERATIONS
from .outcome import Interrupted, Outcome

FIELDS_SHOWN = 10

Object = dict[str, Any]


def ensure(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Create or change the instance as declared, and bring its guest into the state of the request."""
    if request.state not in OPERATIONS:
        return _ensure_present(api, request, terms, live)
    power_state.check(api, request, live)
    done = _ensure_present(api, request, terms, live)
    try:
        return power_state.ensure_guest(api, request, terms, done, done.after)
    except VirtError as error:
        raise Interrupted(done, error) from error


def _ensure_present(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    if live is None or (is_deleting(live) and not request.force):
        return send.create(api, request, terms, live)
    differing = [] if not request.has_machine else differences(request, live)
    is_over = is_final(live) or is_deleting(live)
    is_recreated = request.force and request.has_machine and (bool(differing) or is_over)
    # The controller of an owned instance would create its own at once.
    if is_recreated and _controller(live) is None:
        return _recreate(api, request, terms, live)
    if is_recreated or differing:
        raise _unchangeable(request, live, differing)
    write = update.for_options(_without_machine(request), live)
    if write is None:
        return Outcome(changed=False, before=live, after=live)
    return send.change(api, request, terms, live, write)


def _without_machine(request: VmRequest) -> VmRequest:
    """Return the request reduced to labels and annotations, which can change."""
    declared = {key: value for key, value in request.declaration.obj.items() if key != "spec"}
    return request._replace(declaration=Declaration(declared, frozenset()), is_complete=False, force=False)


def differences(request: VmRequest, live: Object) -> list[str]:
    """Return the paths of the declared fields that differ from the live instance. Pure.

    A field that an earlier task declared and this one does not is no difference: nothing can be removed.
    """
    declared = without_defaults(request.declaration, live, request.kind)
    laid = over_live(request.declaration, declared, live, request.kind)
    patch = compare.merge_patch(live, laid).get("spec")
    return sorted(_leaves(patch, "spec")) if patch else []


def _leaves(patch: Any, path: str) -> list[str]:
    if not isinstance(patch, dict) or not patch:
        return [path]
    return [leaf for key, inner in patch.items() for leaf in _leaves(inner, f"{path}.{key}")]


def _unchangeable(request: VmRequest, live: Object, differing: list[str]) -> VirtError:
    fields = ", ".join(differing[:FIELDS_SHOWN]) + (", ..." if len(differing) > FIELDS_SHOWN else "")
    reasons = [f"the spec of an instance cannot be changed: {fields} differ from what is declared"] if fields else []
    reasons += [f"its run is over ({phase(live)})"] if is_final(live) else []
    reasons += ["it is being deleted"] if is_deleting(live) else []
    return VirtError(f"{request.title} exists, and {', and '.join(reasons)}. {_remedy(request, live)}")


def _remedy(request: VmRequest, live: Object) -> str:
    owner = _controller(live)
    if owner is None:
        return "Use force=true to delete it and create it again, or kubevirt_vm for a machine that can be changed"
    return (
        f"It belongs to {owner['kind']} {request.namespace}/{owner['name']}, which creates its instances as it declares"
        f" them; change that ({kinds.MODULES.get(owner['kind'], owner['kind'])})"
    )


def _controller(live: Object) -> Object | None:
    """Return the owner that creates such instances, None for an instance that belongs to its users."""
    owners = live["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _recreate(api: Api, request: VmRequest, terms: Terms, live: Object) -> Outcome:
    if terms.check_mode:
        from .replace import for_creation

        return Outcome(changed=True, method="replace", before=live, after=for_creation(request).body)
    resource = request.kind.resource(request.namespace, terms.api_version)
    # The UID protects a new instance of the same name.
    api.delete(resource, request.name or "", {"preconditions": {"uid": live["metadata"]["uid"]}})
    deleted = Outcome(changed=True, method="delete", before=live)
    try:
        removal.wait_until_gone(api, resource, live, terms.wait_timeout_seconds)
        created = send.create(api, request, terms, None)
    except VirtError as error:
        raise Interrupted(deleted, error) from error
    return created._replace(method="replace", before=live)

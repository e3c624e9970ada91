# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one VirtualMachineInstance into its state. Thin; what power states mean is in instance_power.py.

What an instance is cannot be changed once it is there. A task that declares it otherwise is refused, or with `force`
the instance is deleted and made anew.
"""

from __future__ import annotations

import time
from typing import Any

from .._client.api import Api
from .._client.errors import TimedOut, VirtError
from .._client.waiter import Verdict, Waiter
from ..kubevirt_api.asked import is_deleting
from ..kubevirt_api.predicates import is_final, phase
from . import cluster, compare, operate, overlay, present, writing
from .instance_power import OPERATIONS
from .manifest import Declared, without_defaults
from .request import Terms, VmRequest
from .service import Interrupted, Outcome

FIELDS_SHOWN = 10

Object = dict[str, Any]


def ensure_instance(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Make the instance be as declared and its guest be in the state of the request; `live` is how it is."""
    if request.state not in OPERATIONS:
        return _present(api, request, terms, live)
    if live is None:
        raise operate.never_started(request)
    done = _present(api, request, terms, live)
    try:
        return operate.operated(api, request, terms, done, done.after)
    except VirtError as error:
        raise Interrupted(done, error) from error


def _present(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    if live is None or (is_deleting(live) and not request.force):
        return writing.created(api, request, terms, live)
    differing = [] if not request.has_machine else differences(request, live)
    is_over = is_final(live) or is_deleting(live)
    is_to_go = request.force and request.has_machine and (bool(differing) or is_over)
    if is_to_go and _maker(live) is None:
        return _made_anew(api, request, terms, live)
    if is_to_go or differing:
        raise _unchangeable(request, live, differing)
    write = present.for_existing(_without_machine(request), live)
    if write is None:
        return Outcome(changed=False, before=live, after=live)
    return writing.changed(api, request, terms, live, write)


def _without_machine(request: VmRequest) -> VmRequest:
    """Return what is declared of labels and annotations, which is all that can still be changed."""
    declared = {key: value for key, value in request.declared.vm.items() if key != "spec"}
    return request._replace(declared=Declared(declared, frozenset()), is_whole=False, force=False)


def differences(request: VmRequest, live: Object) -> list[str]:
    """Return the fields of the machine that are declared otherwise than they are, as paths. Pure.

    What an earlier task declared and this one does not is no difference: nothing can be taken away.
    """
    laid = overlay.over_live(live, without_defaults(request.declared, live, request.kind))
    patch = compare.merge_patch(live, laid).get("spec")
    return sorted(_leaves(patch, "spec")) if patch else []


def _leaves(patch: Any, path: str) -> list[str]:
    if not isinstance(patch, dict) or not patch:
        return [path]
    return [leaf for key, inner in patch.items() for leaf in _leaves(inner, f"{path}.{key}")]


def _unchangeable(request: VmRequest, live: Object, differing: list[str]) -> VirtError:
    named = ", ".join(differing[:FIELDS_SHOWN]) + (", ..." if len(differing) > FIELDS_SHOWN else "")
    found = [f"what an instance is cannot be changed: {named} differ from what is declared"] if named else []
    found += [f"its run is over ({phase(live)})"] if is_final(live) else []
    found += ["it is being deleted"] if is_deleting(live) else []
    return VirtError(f"{request.title} is there, and {', and '.join(found)}. {_remedy(request, live)}")


def _remedy(request: VmRequest, live: Object) -> str:
    maker = _maker(live)
    if maker is None:
        return "Use force=true to have it deleted and made anew, or kubevirt_vm for a machine that can be changed"
    return (
        f"It belongs to {maker['kind']} {request.namespace}/{maker['name']}, which makes its instances as it declares"
        f" them; change that ({cluster.MODULES.get(maker['kind'], maker['kind'])})"
    )


def _maker(live: Object) -> Object | None:
    """Return the owner that makes such instances, None of a bare one: that is nobody's but its users'."""
    owners = live["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller")), None)


def _made_anew(api: Api, request: VmRequest, terms: Terms, live: Object) -> Outcome:
    if terms.check_mode:
        from .whole import for_creation

        return Outcome(changed=True, method="replace", before=live, after=for_creation(request).body)
    resource = request.kind.resource(request.namespace, terms.api_version)
    api.delete(resource, request.name or "", {"preconditions": {"uid": live["metadata"]["uid"]}})
    deleted = Outcome(changed=True, method="delete", before=live)
    try:
        _wait_until_gone(api, request, terms, live)
        made = writing.created(api, request, terms, None)
    except VirtError as error:
        raise Interrupted(deleted, error) from error
    return made._replace(method="replace", before=live)


def _wait_until_gone(api: Api, request: VmRequest, terms: Terms, live: Object) -> None:
    """Wait for as long as the task may, also without `wait`: a name can be given once."""

    def judge(_name: str, obj: Object | None) -> Verdict:
        gone = obj is None or obj["metadata"].get("uid") != live["metadata"].get("uid")
        return Verdict(done=gone)

    resource = request.kind.resource(request.namespace, terms.api_version)
    deadline = time.monotonic() + terms.wait_timeout_seconds
    reached = Waiter(api, resource, judge, deadline=deadline).until([request.name or ""])
    if not all(one.verdict.done for one in reached.values()):
        raise TimedOut(
            f"{request.title} was deleted to be made anew and is still there after {terms.wait_timeout_seconds} s; run"
            " the task again, or give it more time (wait_timeout)"
        )

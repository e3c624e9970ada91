# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, stop and restart one VM: make it be as declared, look at its instance, ask for what is needed."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import NotFound, VirtError
from . import cluster, power
from .request import Terms, VmRequest
from .service import Interrupted, Outcome, ensure_present, read

Object = dict[str, Any]


def powered(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Bring the VM into the power state of the request; `live` is how it is."""
    done = ensure_present(api, request, terms, live)
    if done.after is None or (terms.check_mode and live is None):
        return done
    try:
        return _moved(api, request, terms, done, is_new=live is None)
    except VirtError as error:
        raise Interrupted(done, error) from error


def _moved(api: Api, request: VmRequest, terms: Terms, done: Outcome, *, is_new: bool) -> Outcome:
    vm = done.after or {}
    instance = api.get(cluster.instances(request.namespace, terms.api_version), request.name or "")
    try:
        ask = power.decide(request.state, vm, instance, request.grace_period_seconds)
    except power.Impossible as why:
        raise VirtError(f"VirtualMachine {request.title} cannot be {request.state}: {why}") from why
    if is_new and ask is not None and ask.subresource == "restart":
        ask = None  # it was created a moment ago
    if ask is None:
        return done
    _ask(api, request, terms, ask)
    uid = instance["metadata"].get("uid") if instance and ask.subresource == "restart" else None
    moved = Outcome(changed=True, method=ask.subresource or "patch", before=done.before, after=vm, old_instance_uid=uid)
    if terms.check_mode:
        return moved
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
    dry_run = {"dryRun": ["All"]} if terms.check_mode else {}
    try:
        api.put(cluster.operations(request.namespace), name, ask.subresource, {**ask.body, **dry_run})
    except NotFound as error:
        raise VirtError(
            f"cannot {ask.subresource} VirtualMachine {request.title}: it is gone, or"
            f" {cluster.names.SUBRESOURCES_GROUP} is not served; is virt-api running?"
        ) from error

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send the writes for one object: create, change, delete. A write of another client is a Conflict."""

from __future__ import annotations

from typing import Any

from ..._client.api import FIELD_MANAGER, Api
from ..._client.errors import BadArgument, Conflict, Invalid, NotFound, VirtError
from ...kubevirt_api.desired import is_deleting
from .. import field_path
from ..merge import compare, ownership
from ..request.vm_request import Terms, VmRequest
from .outcome import Interrupted, Outcome
from .update import Write

Object = dict[str, Any]


def create(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Create the object. live: an object of its name that is being deleted, if there is one; its end is waited for."""
    if live is not None and not request.has_machine:
        raise VirtError(
            f"{request.title} is being deleted, and nothing says what a new one should be; give a definition, or spec,"
            " or image, cpu and memory"
        )
    if not request.has_machine:
        from .. import missing

        operation = "changed" if request.state == "present" else request.state
        raise BadArgument(
            f"{request.title} cannot be {operation}: {missing.reason(api, request.namespace, request.kind)}. To create"
            " it, say what it should be: give a definition, or spec, or image, cpu and memory"
        )
    from . import replace

    if live is not None:
        if terms.check_mode:  # a dry run would meet the object that is being deleted
            return Outcome(changed=True, method="create", before=live, after=replace.for_creation(request).body)
        from . import removal

        resource = request.kind.resource(request.namespace, terms.api_version)
        removal.wait_until_gone(api, resource, live, terms.wait_timeout_seconds)
    after = _send(api, request, terms, replace.only_new(replace.for_creation(request)))
    return Outcome(changed=True, method="create", after=after)


def change(api: Api, request: VmRequest, terms: Terms, live: Object, write: Write) -> Outcome:
    """Send a write, and its second request if it has one."""
    after = _send(api, request, terms, write)
    if is_deleting(after) and not terms.check_mode:  # deleted since it was read: the next attempt creates another
        lost = Conflict(f"{request.title} was deleted while it was changed", status=409)
        raise Interrupted(Outcome(changed=False), lost)
    hidden = [list(path) for path in terms.hidden]
    if compare.is_same_content(field_path.without(live, hidden), field_path.without(after, hidden)):
        done = Outcome(changed=False, before=live, after=after)
        is_over = write.then is None or not ownership.is_unrecorded(after, FIELD_MANAGER, write.then.body)
    else:
        done, is_over = Outcome(changed=True, method=write.method, before=live, after=after), write.then is None
    if is_over or write.then is None or terms.check_mode:  # a dry run has stored no version to build on
        return done
    metadata = {**write.then.body["metadata"], "resourceVersion": after["metadata"]["resourceVersion"]}
    try:
        second = _send(api, request, terms, write.then._replace(body={**write.then.body, "metadata": metadata}))
    except VirtError as error:
        raise Interrupted(done, error) from error
    return done._replace(after=second)


def delete(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Delete the object, unless it is gone or being deleted."""
    if live is None:
        return Outcome(changed=False)
    if is_deleting(live):
        return Outcome(changed=False, before=live)
    resource = request.kind.resource(request.namespace, terms.api_version)
    existed = api.delete(resource, live["metadata"]["name"], request.delete_options, dry_run=terms.check_mode)
    return Outcome(changed=existed, method="delete", before=live)


def _send(api: Api, request: VmRequest, terms: Terms, write: Write) -> Object:
    try:
        return _send_one(api, request, terms, write)
    except Invalid as error:
        from ..request import option_origin  # only a refused write needs the tables

        raise option_origin.with_options(error, request, write.body) from error
    except NotFound as error:
        if write.method in ("patch", "replace") and error.facts.get("server_reason"):  # gone since it was read
            raise Conflict(error.message, status=error.status) from error
        raise


def _send_one(api: Api, request: VmRequest, terms: Terms, write: Write) -> Object:
    resource = request.kind.resource(request.namespace, terms.api_version)
    if write.method == "patch":
        return api.patch(resource, request.name or "", write.body, dry_run=terms.check_mode)
    send = {"create": api.create, "apply": api.apply, "replace": api.replace}[write.method]
    return send(resource, write.body, dry_run=terms.check_mode)

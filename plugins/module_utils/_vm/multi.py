# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several objects in a task: many are read with one list request, all are written in parallel, each has a result."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import ApiError, VirtError
from .._client.parallel import in_parallel
from . import kinds
from .request.vm_request import Terms, VmRequest
from .write import ensure_state
from .write.outcome import Outcome

Object = dict[str, Any]


def ensure(api: Api, requests: list[VmRequest], terms: Terms) -> list[Outcome | VirtError]:
    """Bring all objects into their states in parallel; an error takes the place of an outcome."""
    listed = _listed(api, requests, terms)

    def work(thread_api: Api, index: int) -> Outcome:
        request = requests[index]
        # The list may be outdated: an object that it lacks is read again.
        live = listed.get(request.namespace, {}).get(request.name or "")
        return ensure_state.ensure(thread_api, request, terms, live)

    return in_parallel(api, len(requests), work)


def _listed(api: Api, requests: list[VmRequest], terms: Terms) -> dict[str, dict[str, Object]]:
    """Return the objects of the namespaces with enough objects for a list, by namespace and name."""
    counts: dict[str, int] = {}
    for request in requests:
        if request.name is not None:
            counts[request.namespace] = counts.get(request.namespace, 0) + 1
    listed = {}
    for namespace, count in counts.items():
        if count >= kinds.LIST_THRESHOLD:
            try:
                items = api.list(requests[0].kind.resource(namespace, terms.api_version), pages=1)
            except ApiError:
                continue  # each object is then read on its own, and reports the error
            listed[namespace] = {obj["metadata"]["name"]: obj for obj in items}
    return listed


def result(
    requests: list[VmRequest],
    written: list[Outcome | VirtError],
    outcomes: list[Outcome | VirtError],
    results: list[dict[str, Any]],
    warned: dict[str, list[str]],
) -> dict[str, Any]:
    """Return the task's result; raises it as an error if an object failed.

    written: the outcomes before the wait. outcomes: after it. results: one for each object. warned: the warnings.
    """
    listed = []
    for request, outcome, object_result in zip(requests, written, results, strict=True):
        listed.append(
            {"namespace": request.namespace, "name": request.name or _generated_name(outcome), **object_result}
        )
    task: dict[str, Any] = {
        "changed": any(object_result["changed"] for object_result in results),
        "results": listed,
        **warned,
    }
    diffs = [object_result.pop("diff") for object_result in listed if "diff" in object_result]
    if diffs:
        task["diff"] = diffs
    errors = [outcome for outcome in outcomes if isinstance(outcome, VirtError)]
    if errors:
        text = "; ".join(error.message for error in errors[:10])
        plural = f"{requests[0].kind.list_option[:-1].upper()}s"
        raise VirtError(f"{len(errors)} of {len(requests)} {plural} failed: {text}", **task)
    return task


def _generated_name(outcome: Outcome | VirtError) -> str:
    """Return the name that the server chose, "" for an object that was not created."""
    return "" if isinstance(outcome, VirtError) or not outcome.after else outcome.after["metadata"]["name"]

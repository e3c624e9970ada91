# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""More than one object in a task: read with one list where they are many, written at once, told of one by one.

Apart from batch.py, for most tasks have one.
"""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import ApiError, VirtError
from .._client.parallel import in_parallel
from . import cluster, service
from .request import Terms, VmRequest
from .service import Outcome

Object = dict[str, Any]


def ensured(api: Api, requests: list[VmRequest], terms: Terms) -> list[Outcome | VirtError]:
    """Bring all objects into their states at once; an error takes the place of an outcome."""
    known = _listed(api, requests, terms)

    def work(own: Api, index: int) -> Outcome:
        request = requests[index]
        there = known.get(request.namespace)
        if there is not None and request.name and request.name not in there:
            return service.ensure(own, request, terms)  # a list says what is there, a read that something is not
        return service.ensure(own, request, terms, there.get(request.name or "") if there else None)

    return in_parallel(api, len(requests), work)


def _listed(api: Api, requests: list[VmRequest], terms: Terms) -> dict[str, dict[str, Object]]:
    """Read namespaces of which many VMs are wanted with one request each, where the user may."""
    counts: dict[str, int] = {}
    for request in requests:
        if request.name is not None:
            counts[request.namespace] = counts.get(request.namespace, 0) + 1
    found = {}
    for namespace, count in counts.items():
        if count >= cluster.LIST_FROM:
            try:
                items = api.list(requests[0].kind.resource(namespace, terms.api_version), pages=1)
            except ApiError:
                continue  # each is read by itself then, and says what is wrong
            found[namespace] = {item["metadata"]["name"]: item for item in items}
    return found


def result(
    requests: list[VmRequest],
    made: list[Outcome | VirtError],
    outcomes: list[Outcome | VirtError],
    shown: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the task's result out of what is shown of each object; raises it where one of them failed.

    made: before anything was waited for, outcomes: after it.
    """
    results = []
    for request, outcome, one in zip(requests, made, shown, strict=True):
        name = request.name or _made_name(outcome)
        results.append({"namespace": request.namespace, "name": name, **one})
    whole = {"changed": any(one["changed"] for one in shown), "results": results}
    diffs = [one.pop("diff") for one in results if "diff" in one]
    if diffs:
        whole["diff"] = diffs
    failed = [one for one in outcomes if isinstance(one, VirtError)]
    if failed:
        text = "; ".join(error.message for error in failed[:10])
        several = f"{requests[0].kind.entries[:-1].upper()}s"
        raise VirtError(f"{len(failed)} of {len(requests)} {several} failed: {text}", **whole)
    return whole


def _made_name(outcome: Outcome | VirtError) -> str:
    """Return the name that the server made, "" of what was not created."""
    return "" if isinstance(outcome, VirtError) or not outcome.after else outcome.after["metadata"]["name"]

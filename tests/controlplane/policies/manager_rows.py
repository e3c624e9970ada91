# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field managers: the API server stores each manager's name and fields in the object, and all watchers get them.

With ever new names a captured virt-handler could make its Node hundreds of kilobytes large. None: the request is
accepted.
"""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.lease import lease_name
from controlplane.virt_handler.node import labels as node
from tests.controlplane.policies.event_rows import EVENTS, an_event
from tests.controlplane.policies.handler_rows import (
    BEAT,
    CAPTURED,
    ENDPOINT,
    HANDLER,
    MINE,
    NO_KVM,
    OWN,
    WEB,
    Row,
    first_lease,
    lease,
)
from tests.controlplane.policies.replay import LEASES, Json, Request, Who

NODE_3 = Who(HANDLER.user, "node-3")
AS_ITSELF = "virt-handler writes as field manager virt-handler"
NO_APPLY = "by a patch that is no server-side apply"
AS_THEY_WERE = "says nothing of who else wrote what (managedFields)"
NO_BOOK = "more than there may be of who wrote what (managedFields)"
STATUS = {"status": {"guestOSInfo": {"name": "CirrOS"}}}


def managers(api_version: str, number: int) -> list[Json]:
    """Return managedFields with so many managers, each with fields that need not exist."""
    fields: Json = {"f:metadata": {"f:labels": {f"f:kubevirt.io/{index}": {} for index in range(200)}}}
    return [
        {
            "manager": f"manager-{index}",
            "operation": "Apply",
            "apiVersion": api_version,
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for index in range(number)
    ]


def row(verb: str, path: str, body: Any, words: str, manager: str | None = None, who: Who = CAPTURED) -> Row:
    return Request(who, verb, path, body, manager), words


LABELLED = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"kubevirt.io/x": "y"}}}
AS_IT_IS = {**LABELLED, "metadata": {"name": "node-1", "labels": {"zone": "a"}, "annotations": {"note": "a"}}}
APPLIED = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "running"},
    "status": {"guestOSInfo": {"name": "CirrOS"}},
}
LEASED = managers("coordination.k8s.io/v1", 2)
OTHERS_LEASE = f"{LEASES}/{lease_name('node-2')}"
"""An administrator has applied a label to this Lease: LABEL_APPLIED."""
LABEL_APPLIED = {**lease(""), "metadata": {"name": lease_name("node-2"), "labels": {"a": "b"}}}
del LABEL_APPLIED["spec"]


def claimed(manager: str, operation: str = "Apply", **fields: Any) -> Json:
    """Return a patch which claims that this manager has written these fields of a Lease."""
    (entry,) = managers("coordination.k8s.io/v1", 1)
    claim = {
        "manager": manager,
        "operation": operation,
        "fieldsV1": {f"f:{key}": value for key, value in fields.items()},
    }
    return {"metadata": {"managedFields": [{**entry, **claim}]}}


def forging(body: Any) -> Row:
    return row("PATCH", OTHERS_LEASE, body, AS_THEY_WERE, None, Who(HANDLER.user, "node-2").unbound)


APPLIED_TO_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "applied", "labels": {"zone": "a"}}}


def with_more(entry: Json) -> Json:
    """Return a managedFields entry of a Node that also claims taints and an annotation."""
    fields = entry["fieldsV1"]
    noted = {**fields["f:metadata"], "f:annotations": {"f:a": {}}}
    return {**entry, "fieldsV1": {**fields, "f:spec": {"f:taints": {}}, "f:metadata": noted}}


def ways(who: Who, path: str, stored: Json, managed_fields: list[Json] | None) -> list[Request]:
    """Return each way to set an object's managedFields, with this account's rights and with all rights."""
    body = {"metadata": {"managedFields": managed_fields}}
    whole = {**stored, "metadata": {**stored["metadata"], "managedFields": managed_fields}}
    del whole["metadata"]["resourceVersion"]
    operations = [{"op": "add", "path": "/metadata/managedFields", "value": managed_fields}]
    return [
        Request(account, verb, path, value)
        for account in (who, who.unbound)
        for verb, value in (("PATCH", body), ("STRATEGIC", body), ("JSON", operations), ("PUT", whole))
    ]


FINALIZERS: Json = {"f:finalizers": {}}
LABELS: Json = {"f:labels": {"f:a": {}}}

MANAGER_ROWS: dict[str, Row] = {
    "its node": row("PATCH", MINE, node.serving_patch(NO_KVM, 0, ENDPOINT), AS_ITSELF, "m-1"),
    "its node, by no name": row("PATCH", MINE, node.leaving_patch(), AS_ITSELF, ""),
    "its node, applied": row("APPLY", MINE, LABELLED, AS_ITSELF, "m-1"),
    "its node, applied in its name": row("APPLY", MINE, LABELLED, NO_APPLY),
    "its node, others' labels applied as they are": row("APPLY", MINE, AS_IT_IS, NO_APPLY),
    "its Lease": row("PATCH", OWN, BEAT, AS_ITSELF, "m-1"),
    "its Lease, with a book": row("PATCH", OWN, {**BEAT, "metadata": {"managedFields": LEASED}}, NO_BOOK),
    "its first Lease": row("POST", LEASES, first_lease(), AS_ITSELF, "m-1", NODE_3),
    "its first Lease, with a book": row("POST", LEASES, first_lease(managedFields=LEASED), NO_BOOK, None, NODE_3),
    "its first Lease, as another's": row(
        "POST", LEASES, first_lease(**claimed("kubectl", metadata=FINALIZERS)["metadata"]), AS_THEY_WERE, None, NODE_3
    ),
    "its Lease, as another's": forging(claimed("kubectl", metadata=FINALIZERS)),
    "its Lease, as another's of more": forging(claimed("kubectl", metadata={**LABELS, **FINALIZERS})),
    "its Lease, as another's of a spec": forging(claimed("kubectl", metadata=LABELS, spec={"f:holderIdentity": {}})),
    "its Lease, as another's of less": forging(claimed("kubectl", metadata={})),
    "its Lease, as another's by another way": forging(claimed("kubectl", "Update", metadata=LABELS)),
    "its Lease, as nobody's but its own": forging(claimed("virt-handler", metadata=FINALIZERS)),
    "its Lease, as nobody's": forging({"metadata": {"managedFields": [{}]}}),
    "its Lease, as ever": (
        Request(Who(HANDLER.user, "node-2"), "PATCH", OTHERS_LEASE, {"metadata": {"managedFields": None}}),
        None,
    ),
    "an Event": row("POST", EVENTS, an_event(), AS_ITSELF, "m-1"),
    "an Event, with a book": row(
        "POST", EVENTS, an_event(metadata={**an_event()["metadata"], "managedFields": managers("v1", 2)}), NO_BOOK
    ),
    "its machine": row("PATCH", WEB, STATUS, AS_ITSELF, "m-1"),
    "its machine, applied": row("APPLY", WEB, APPLIED, AS_ITSELF, "m-1"),
    "its machine, by the old version's name": row("PATCH", WEB.replace("/v1/", "/v1alpha3/"), STATUS, AS_ITSELF, "m-1"),
}

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who says that they wrote it: each name of a writer is kept with what it wrote, in the object that everybody watches.

A captured virt-handler that wrote by ever new names made its Node hundreds of kilobytes large. None: it is taken.
"""

from __future__ import annotations

from typing import Any

from controlplane.virt_handler import node
from tests.controlplane.policies.event_rows import EVENTS, told
from tests.controlplane.policies.handler_rows import (
    BEAT,
    CAPTURED,
    DOOR,
    HANDLER,
    MINE,
    NO_KVM,
    OWN,
    WEB,
    Row,
    first_lease,
)
from tests.controlplane.policies.replay import LEASES, Json, Request, Who

NODE_3 = Who(HANDLER.user, "node-3")
AS_ITSELF = "virt-handler writes as field manager virt-handler"
NO_BOOK = "more than there may be of who wrote what (managedFields)"
SAID = {"status": {"guestOSInfo": {"name": "CirrOS"}}}


def managers(api_version: str, number: int) -> list[Json]:
    """Return what a body may say of who wrote what: so many managers, each of fields that there need not be."""
    fields: Json = {"f:metadata": {"f:labels": {f"f:kubevirt.io/{one}": {} for one in range(200)}}}
    return [
        {
            "manager": f"manager-{one}",
            "operation": "Apply",
            "apiVersion": api_version,
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for one in range(number)
    ]


def row(verb: str, path: str, body: Any, words: str, manager: str | None = None, who: Who = CAPTURED) -> Row:
    return Request(who, verb, path, body, manager), words


LABELLED = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"kubevirt.io/x": "y"}}}
APPLIED = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "running"},
    "status": {"guestOSInfo": {"name": "CirrOS"}},
}
LEASED = managers("coordination.k8s.io/v1", 2)

MANAGER_ROWS: dict[str, Row] = {
    "its node": row("PATCH", MINE, node.serving_patch(NO_KVM, 0, DOOR), AS_ITSELF, "m-1"),
    "its node, by no name": row("PATCH", MINE, node.leaving_patch(), AS_ITSELF, ""),
    "its node, applied": row("APPLY", MINE, LABELLED, AS_ITSELF, "m-1"),
    "its node, applied in its name": (Request(HANDLER, "APPLY", MINE, LABELLED), None),
    "its node, with a book": row("PATCH", MINE, {"metadata": {"managedFields": managers("v1", 9)}}, NO_BOOK),
    "its Lease": row("PATCH", OWN, BEAT, AS_ITSELF, "m-1"),
    "its Lease, with a book": row("PATCH", OWN, {**BEAT, "metadata": {"managedFields": LEASED}}, NO_BOOK),
    "its first Lease": row("POST", LEASES, first_lease(), AS_ITSELF, "m-1", NODE_3),
    "its first Lease, with a book": row("POST", LEASES, first_lease(managedFields=LEASED), NO_BOOK, None, NODE_3),
    "an Event": row("POST", EVENTS, told(), AS_ITSELF, "m-1"),
    "an Event, with a book": row(
        "POST", EVENTS, told(metadata={**told()["metadata"], "managedFields": managers("v1", 2)}), NO_BOOK
    ),
    "its machine": row("PATCH", WEB, SAID, AS_ITSELF, "m-1"),
    "its machine, applied": row("APPLY", WEB, APPLIED, AS_ITSELF, "m-1"),
    "its machine, by the old version's name": row("PATCH", WEB.replace("/v1/", "/v1alpha3/"), SAID, AS_ITSELF, "m-1"),
}

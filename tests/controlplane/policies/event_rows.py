# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Events virt-handler of node-1 may create, and which a captured one may not. None: the request is accepted.

virt-controller uses Events to find out why a Pod does not start, and users trust all Events.
"""

from __future__ import annotations

from typing import Any

from controlplane.kube.events import EventSpec, event_body
from tests.controlplane.policies.handler_rows import CAPTURED, HANDLER, NOBODYS, OWNER, Row
from tests.controlplane.policies.replay import Json, Request, Who

EVENTS = "/api/v1/namespaces/default/events"
NEWER = "/apis/events.k8s.io/v1/namespaces/default/events"
CRASH = EventSpec("GuestCrashed", "the guest crashed", "Warning")
IN_ITS_NAME = "in its own name and its node's"
ABOUT_VMIS = "only about VirtualMachineInstances"
NOTHING_MORE = "nothing but what it tells"
ONLY_MAKES = "may only make Events"


def an_event(**changed: Any) -> Json:
    """Return an Event exactly as virt-handler makes it, with these changes."""
    vmi = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "running", "namespace": "default", "uid": "0000aaaa", "resourceVersion": "7"},
    }
    body = event_body(vmi, CRASH, component="virt-handler", instance="node-1", now=1_800_000_000.0)
    return {**body, **changed}


def about(**changed: Any) -> Json:
    return an_event(involvedObject={**an_event()["involvedObject"], **changed})


def named(**changed: Any) -> Json:
    return an_event(metadata={**an_event()["metadata"], **changed})


def row(body: Json, words: str | None, who: Who | None = None) -> Row:
    return Request(who or (HANDLER if words is None else CAPTURED), "POST", EVENTS, body), words


KUBELETS = {
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "launcher", "namespace": "default"},
    "source": {"component": "kubelet", "host": "node-2"},
    "reason": "FailedMount",
}
TO_BE_CHANGED = "existing"
"""The name of an existing Event."""

EVENT_ROWS: dict[str, Row] = {
    "as virt-handler makes it": row(an_event(), None),
    "the longest message": row(an_event(message="x" * 1024), None),
    "by a token without a node": row(an_event(), "names no node", NOBODYS),
    "as another node's": row(an_event(), IN_ITS_NAME, Who(HANDLER.user, "node-2").unbound),
    "as a kubelet, about a Pod": row(an_event(**KUBELETS), ABOUT_VMIS),
    "as a kubelet": row(an_event(source={"component": "kubelet", "host": "node-1"}), IN_ITS_NAME),
    "as virt-controller": row(an_event(reportingComponent="virt-controller"), IN_ITS_NAME),
    "from nowhere": row(an_event(source={"component": "virt-handler"}), IN_ITS_NAME),
    "by another instance": row(an_event(reportingInstance="node-2"), IN_ITS_NAME),
    "about a Pod": row(about(apiVersion="v1", kind="Pod"), ABOUT_VMIS),
    "about another group's machine": row(about(apiVersion="x.kubevirt.io/v1"), ABOUT_VMIS),
    "about a machine of a very long version": row(about(apiVersion="kubevirt.io/" + "x" * 100_000), ABOUT_VMIS),
    "about a machine of no namespace": row(about(namespace=""), ABOUT_VMIS),
    "about a field": row(about(fieldPath="x" * 10_000), ABOUT_VMIS),
    "about a very long UID": row(about(uid="x" * 65), ABOUT_VMIS),
    "with a finalizer": row(named(finalizers=["evil.example/stay"]), NOTHING_MORE),
    "with an owner": row(named(ownerReferences=[OWNER]), NOTHING_MORE),
    "with labels": row(named(labels={"x": "y"}), NOTHING_MORE),
    "with annotations": row(named(annotations={"x": "y" * 100_000}), NOTHING_MORE),
    "with another object": row(an_event(related={"kind": "Pod", "name": "x" * 100_000}), NOTHING_MORE),
    "a too long message": row(an_event(message="x" * 1025), NOTHING_MORE),
    "a very long reason": row(an_event(reason="x" * 65), NOTHING_MORE),
    "through the newer API group": (
        Request(
            CAPTURED,
            "POST",
            NEWER,
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": "x"},
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingController": "kubelet",
                "reportingInstance": "node-2",
                "action": "x",
                "reason": "FailedMount",
                "type": "Warning",
                "regarding": {"kind": "Pod", "name": "launcher", "namespace": "default"},
            },
        ),
        ABOUT_VMIS,
    ),
    "a change": (Request(CAPTURED, "PATCH", f"{EVENTS}/{TO_BE_CHANGED}", {"message": "x"}), ONLY_MAKES),
    "a deletion": (Request(CAPTURED, "DELETE", f"{EVENTS}/{TO_BE_CHANGED}"), ONLY_MAKES),
}

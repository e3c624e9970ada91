# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schedulable label of nodes, and the precondition for its removal. It shares no code with the node controller."""

from __future__ import annotations

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.resources import LEASE, Key
from tests.controlplane.simulation.answers import Request
from tests.support.store import Json, Store

INSTALL_NAMESPACE = "kubevirt"
EVERY_SECONDS, DURATION_SECONDS = 30.0, 120
"""Of a heartbeat in the simulation: less often than by default, to save steps."""


def lease_key(node: str) -> Key:
    return Key(INSTALL_NAMESPACE, f"virt-handler-{node}")


def is_listed(node: Json) -> bool:
    """Whether machines are scheduled to a Node."""
    return bool((node["metadata"].get("labels") or {}).get(SCHEDULABLE) == "true")


def silent_for(store: Store, node: str, known: int | None = None) -> float | None:
    """Return how long a node's Lease has truly been unchanged; None without a Lease.

    known: the version of the store up to which its changes count.
    """
    changes = [item for item in store.histories[LEASE.kind] if item.key == lease_key(node)]
    changes = [item for item in changes if known is None or item.version <= known]
    return store.now - changes[-1].at if changes else None


def taken_off_rightly(request: Request) -> str | None:
    """A node is made unschedulable only after an observed silence and a new read, and only while it is labelled
    schedulable.
    """
    body, node = request.call.asked["patch"], request.call.key
    if body != {"metadata": {"labels": {SCHEDULABLE: "false"}}}:
        return f"virt-controller writes {body} of a Node"
    if not request.call.asked.get("uid"):
        return "it names no uid"
    answer = request.in_pass.of(LEASE.kind, lease_key(node.name))
    if answer is None:
        return "the Lease was not read"
    silence = silent_for(request.store, node.name, answer.version)  # changes after the response cannot be known
    watched = request.age if silence is None else min(request.age, silence)
    if watched < (40 if silence is None else DURATION_SECONDS):
        return f"the node is taken off the list after {watched:.1f} s of silence that could be watched"
    return None

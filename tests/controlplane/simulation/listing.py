# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schedulable label of nodes: the preconditions of its two writers, and the rate of heartbeats.

It shares no code with the heartbeat, virt-handler's labelling and the node controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.resources import LEASE, NODE, Key
from tests.controlplane.simulation.answers import Asked
from tests.support.store import Json, Store

NAMESPACE = "kubevirt"
EVERY_SECONDS, DURATION_SECONDS = 30.0, 120
"""Of a heartbeat in the simulation: less often than by default, to save steps."""
RETRY_SECONDS = 2.0
OWN_LABELS = (SCHEDULABLE, "kubevirt.io/kvm-usable")
WHEN = "kubevirt.io/heartbeat"
"""The annotation with the time; no write is made only for it."""


def lease_key(node: str) -> Key:
    return Key(NAMESPACE, f"virt-handler-{node}")


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


def taken_off_rightly(asked: Asked) -> str | None:
    """A node is made unschedulable only after an observed silence and a new read, and only while it is labelled
    schedulable.
    """
    body, node = asked.call.asked["patch"], asked.call.key
    if body != {"metadata": {"labels": {SCHEDULABLE: "false"}}}:
        return f"virt-controller writes {body} of a Node"
    if not asked.call.asked.get("uid"):
        return "it names no uid"
    answer = asked.in_pass.of(LEASE.kind, lease_key(node.name))
    if answer is None:
        return "the Lease was not asked for"
    silence = silent_for(asked.store, node.name, answer.version)  # changes after the response cannot be known
    watched = asked.age if silence is None else min(asked.age, silence)
    if watched < (40 if silence is None else DURATION_SECONDS):
        return f"the node is taken off the list after {watched:.1f} s of silence that could be watched"
    return None


def heard_rightly(asked: Asked, node: str, since_last: float | None) -> str | None:
    """virt-handler renews only its own Lease, and not too often. since_last: seconds since its last renewal request."""
    if asked.call.key not in (lease_key(node), Key(NAMESPACE, "")):
        return "it is another's Lease"
    body = asked.call.asked.get("patch") or asked.call.asked["body"]
    spec = body["spec"]
    if spec["holderIdentity"] != node or spec["leaseDurationSeconds"] != DURATION_SECONDS or not spec["renewTime"]:
        return f"it says {spec}"
    is_early = since_last is not None and since_last < RETRY_SECONDS - 0.01
    return f"it was renewed {since_last:.1f} s ago" if is_early and asked.call.verb == "patch" else None


def listed_rightly(asked: Asked, node: str) -> str | None:
    """virt-handler labels only its own Node, only with a change, and only while its Lease is renewed."""
    meta = asked.call.asked["patch"]["metadata"]
    labels = meta.get("labels", {})
    if asked.call.key != Key("", node) or not {*labels} <= {*OWN_LABELS} or {*meta} - {"labels", "annotations"}:
        return f"it writes {meta} of {asked.call.key}"
    answer = asked.ever.of(NODE.kind, asked.call.key)
    if answer is None or answer.found is None:
        return "the Node was not read before"
    reported: dict[str, Any] = {**meta.get("annotations", {}), **labels}
    if not _differs(answer.found, reported):
        return "it says what is said already"
    silence = silent_for(asked.store, node)
    if labels.get(SCHEDULABLE) == "true" and (silence is None or silence >= DURATION_SECONDS):
        return f"it puts itself on the list, and its Lease stands still for {silence} s"
    return None


def _differs(node: Json, said: Mapping[str, Any]) -> bool:
    meta = node["metadata"]
    known = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    return any(known.get(name) != value for name, value in said.items() if name != WHEN)

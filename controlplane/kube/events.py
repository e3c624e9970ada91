# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build and create Events. The components choose which."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from controlplane.api.objects.resources import EVENT
from controlplane.engine.errors import AlreadyExists
from controlplane.engine.ports import Api, Json
from controlplane.kube.lease import render_time

MAX_MESSAGE_CHARACTERS = 1024  # the API server's limit
_MAX_NAME_CHARACTERS = 253 - 17


@dataclass(frozen=True, slots=True)
class EventSpec:
    """What one Event says."""

    reason: str
    """CamelCase word, e.g. SuccessfulCreate."""
    message: str
    kind: Literal["Normal", "Warning"] = "Normal"
    once: str = ""
    """Events about one object with equal reason, message and `once` are one Event, so a retry does not repeat it."""


def event_body(about: Json, spec: EventSpec, *, component: str, instance: str, now: float) -> Json:
    """Return the Event about an object (with apiVersion, kind and metadata)."""
    meta = about["metadata"]
    # With the UID: a new object of the same name gets Events of its own.
    identity = "\0".join((meta.get("uid", ""), component, spec.reason, spec.message, spec.once))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    namespace = meta.get("namespace") or "default"
    stamp = render_time(now)[:-8] + "Z"
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": f"{meta['name'][:_MAX_NAME_CHARACTERS].rstrip('.-')}.{digest}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": meta["name"],
            "namespace": meta.get("namespace", ""),
            "uid": meta.get("uid", ""),
            "resourceVersion": meta.get("resourceVersion", ""),
        },
        "type": spec.kind,
        "reason": spec.reason,
        "message": spec.message[:MAX_MESSAGE_CHARACTERS],
        "source": {"component": component, "host": instance},
        "reportingComponent": component,
        "reportingInstance": instance,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }


async def create_event(api: Api, about: Json, spec: EventSpec, *, component: str, instance: str, now: float) -> None:
    """Create the Event. An existing one is no error."""
    body = event_body(about, spec, component=component, instance=instance, now=now)
    try:
        await api.create(EVENT, body["metadata"]["namespace"], body)
    except AlreadyExists:
        return

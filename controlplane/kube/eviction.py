# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evict a Pod: a deletion that disruption budgets and admission can refuse."""

from __future__ import annotations

import msgspec

from controlplane.api.objects.resources import POD, Key
from controlplane.kube.client import Client, object_path
from controlplane.kube.transport import Request


async def evict(client: Client, pod: Key, uid: str) -> None:
    """Evict the Pod with this UID. Raises Throttled while a budget does not allow it; the message says why."""
    client.guard()
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},  # not a newer Pod of the same name
    }
    path = f"{object_path(POD, pod)}/eviction"
    await client.transport.send(Request("POST", path, f"evict Pod {pod}", msgspec.json.encode(body)))

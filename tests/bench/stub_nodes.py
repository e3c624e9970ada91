# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stub scheduler, kubelets and virt-handlers that write what the real ones would, without delay: what remains is
the time of the control plane. They write as often as the real ones, so that the API server has the same load.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from kubevirt_api.names import LAUNCHER_ROLE, ROLE

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.clock import SystemClock
from controlplane.engine.errors import ApiError, Conflict, NotFound
from controlplane.kube.client import Client, Selection
from controlplane.kube.transport import Request
from controlplane.kube.watch import WatchCache

Json = dict[str, Any]
STAMP = "2026-01-01T00:00:00Z"
NODES = 10
_CONTAINER = {"name": "compute", "ready": True, "image": "x", "imageID": "x", "restartCount": 0}
_READY = {"type": "Ready", "status": "True"}
UP: Json = {
    "phase": "Running",
    "conditions": [{"type": "PodScheduled", "status": "True"}, _READY],
    "containerStatuses": [{**_CONTAINER, "state": {"running": {"startedAt": STAMP}}}],
}
DONE: Json = {
    "phase": "Succeeded",
    "containerStatuses": [{**_CONTAINER, "ready": False, "state": {"terminated": {"exitCode": 0}}}],
}


class StubNodes:
    """Ten nodes on which every launcher starts and every guest runs, until its Pod is deleted."""

    def __init__(self, client: Client) -> None:
        self._client = client
        clock = SystemClock()
        launchers = Selection(POD, label_selector=f"{ROLE}={LAUNCHER_ROLE}")
        self._pods = WatchCache(client, launchers, clock)
        self._vmis = WatchCache(client, Selection(VIRTUAL_MACHINE_INSTANCE), clock)
        self._pods.subscribe(self._on_pod)
        self._vmis.subscribe(self._on_vmi)
        self._done: set[tuple[str, str]] = set()
        """Completed steps: a UID, and the name of the step."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._vmis.run())

    def _on_pod(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        if after is None:
            return
        pod = json.loads(after)
        uid, meta = pod["metadata"]["uid"], pod["metadata"]
        if "deletionTimestamp" in meta:
            self._once(uid, "end", self._end(key, uid))
        elif "nodeName" not in pod["spec"]:
            self._once(uid, "begin", self._begin(key, uid))

    def _on_vmi(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        if after is None:
            return
        vmi = json.loads(after)
        status, uid = vmi.get("status", {}), vmi["metadata"]["uid"]
        if status.get("phase") == "Scheduled":
            self._once(uid, "start", self._start(key, vmi))

    def _once(self, uid: str, what: str, doing: Coroutine[Any, Any, None]) -> None:
        if (uid, what) in self._done:
            doing.close()
            return
        self._done.add((uid, what))
        task = asyncio.create_task(_ignore_missing(doing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, key: Key, uid: str) -> None:
        """Bind the Pod, as the scheduler does, and report it as running, as its kubelet does."""
        node = f"node-{int(uid[:4], 16) % NODES}"
        binding = {"metadata": {"name": key.name}, "target": {"kind": "Node", "name": node}}
        path = f"/api/v1/namespaces/{key.namespace}/pods/{key.name}/binding"
        await self._client.transport.send(Request("POST", path, "bind", json.dumps(binding).encode()))
        await self._client.patch(POD, key, {"status": UP}, subresource="status")

    async def _end(self, key: Key, uid: str) -> None:
        """Power off the guest: virt-handler reports it, then the kubelet, which removes the Pod."""
        pod = self._pods.get(key)
        owners = json.loads(pod)["metadata"].get("ownerReferences", []) if pod else []
        for owner in owners:
            vmi = Key(key.namespace, owner["name"])
            patch = {"status": {"phase": "Succeeded"}, "metadata": {"uid": owner["uid"]}}
            await self._client.patch(VIRTUAL_MACHINE_INSTANCE, vmi, patch, subresource="status")
        await self._client.patch(POD, key, {"status": DONE}, subresource="status")
        at_once = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}  # as a kubelet after the grace period
        path = f"/api/v1/namespaces/{key.namespace}/pods/{key.name}"
        await self._client.transport.send(Request("DELETE", path, "delete", json.dumps(at_once).encode()))

    async def _start(self, key: Key, vmi: Json) -> None:
        """Report that the guest runs and is ready, in one write as virt-handler does."""
        conditions = [condition for condition in vmi["status"].get("conditions", []) if condition["type"] != "Ready"]
        interfaces = [
            {"name": "default", "ipAddress": "10.0.0.9", "ipAddresses": ["10.0.0.9"], "mac": "02:00:00:00:00:01"}
        ]
        entered = {"phase": "Running", "phaseTransitionTimestamp": STAMP}
        status = {
            "phase": "Running",
            "conditions": [*conditions, {**_READY, "lastTransitionTime": STAMP}],
            "interfaces": interfaces,
            "phaseTransitionTimestamps": [*vmi["status"].get("phaseTransitionTimestamps", []), entered],
        }
        version = vmi["metadata"]["resourceVersion"]
        try:
            await self._client.patch(
                VIRTUAL_MACHINE_INSTANCE, key, {"status": status}, subresource="status", resource_version=version
            )
        except Conflict:
            self._done.discard((vmi["metadata"]["uid"], "start"))
            newer = self._vmis.get(key)
            if newer is not None:
                self._on_vmi(key, None, newer)


async def _ignore_missing(doing: Coroutine[Any, Any, None]) -> None:
    """Run it; ignore objects that are gone."""
    try:
        await doing
    except NotFound:
        return
    except ApiError as error:
        print(f"stub nodes: {error}", flush=True)

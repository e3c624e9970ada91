# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""evacuate/cancel on a node that the configured taint drains."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.kube.access_review import User
from controlplane.virt_api.subresources.cancel_evacuation import cancel_evacuation
from controlplane.virt_api.subresources.options import EvacuationOptions

WEB = Key("default", "web")


class TaintedNode:
    """The API, with an instance that is to leave a node with this taint."""

    def __init__(self, taint: str) -> None:
        self._taint = taint
        self.patches: list[Any] = []

    async def get(self, resource: Resource, key: Key) -> Any:
        if resource is VIRTUAL_MACHINE_INSTANCE:
            metadata = {"name": key.name, "namespace": key.namespace, "resourceVersion": "1"}
            status = {"nodeName": "node-1", "evacuationNodeName": "node-1"}
            return {"metadata": metadata, "spec": {"domain": {}}, "status": status}
        return {"spec": {"taints": [{"key": self._taint, "value": "x", "effect": "NoSchedule"}]}}

    async def patch(self, _resource: Resource, _key: Key, body: Any, **_options: Any) -> None:
        self.patches.append(body)


@pytest.mark.parametrize(
    ("taint", "configured", "code"),
    [
        ("kubevirt.io/drain", "", 400),
        ("kubevirt.io/drain", "example.com/out", 200),
        ("example.com/out", "example.com/out", 400),
        ("example.com/out", "", 200),
    ],
)
async def test_the_taint_that_drains_refuses_it_by_its_key(taint: str, configured: str, code: int) -> None:
    api: Any = TaintedNode(taint)

    response = await cancel_evacuation(api, WEB, EvacuationOptions(), User("me"), configured)

    assert response.code == code
    assert (f"{taint}:NoSchedule".encode() in response.body) == (code == 400)
    assert api.patches == ([] if code == 400 else [{"status": {"evacuationNodeName": None}}])

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM, its VMI and its migrations on a fake API server."""

from __future__ import annotations

from typing import Any

from tests.controlplane.kube.fake_api import FakeApi

IN_NS = "/apis/kubevirt.io/v1/namespaces/ns"
VM, VMI, MIGRATIONS = (
    f"{IN_NS}/virtualmachines/web",
    f"{IN_NS}/virtualmachineinstances/web",
    f"{IN_NS}/virtualmachineinstancemigrations",
)
TEMPLATE = {"spec": {"domain": {"devices": {}}}}
UNFIT = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "its disk stays"}


def put_vm(api: FakeApi) -> None:
    api.put(VM, {"spec": {"runStrategy": "Always", "template": TEMPLATE}})


def put_vmi(api: FakeApi, phase: str = "Running", *, conditions: Any = (), owner: str = "") -> None:
    owners = [
        {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": owner, "controller": True}
    ]
    status = {"phase": phase, "nodeName": "node-1", "conditions": list(conditions)}
    api.put(VMI, {"metadata": {"ownerReferences": owners if owner else []}, **TEMPLATE, "status": status})


def put_migration(api: FakeApi, name: str, phase: str = "", vmi: str = "web") -> None:
    api.put(f"{MIGRATIONS}/{name}", {"spec": {"vmiName": vmi}, "status": {"phase": phase}})


def made(api: FakeApi) -> list[dict[str, Any]]:
    """Return the existing migrations."""
    return [body for path, body in api.objects.items() if path.startswith(f"{MIGRATIONS}/")]

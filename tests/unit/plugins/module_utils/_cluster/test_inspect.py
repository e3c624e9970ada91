# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of a cluster before its control plane is installed or removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.inspect import _MACHINES, run

ASKED: dict[str, Any] = {"node_selector": {}, "tolerations": [], "launcher_image": None}
ROLE = Path(__file__).resolve().parents[5] / "roles" / "control_plane"


def test_every_kind_of_users_is_checked_for_remaining_objects() -> None:
    kinds = yaml.safe_load((ROLE / "files" / "kinds.yaml").read_text())

    assert {item.plural for item in _MACHINES} == {item["plural"] for item in kinds if item["is_users"]}


def test_sets_are_deleted_before_the_instances_that_they_would_replace() -> None:
    order = [machine.plural for machine in _MACHINES]
    assert order[:2] == ["virtualmachinepools", "virtualmachineinstancereplicasets"]
    assert order[2:4] == ["virtualmachineinstancemigrations", "virtualmachines"], "and what moves them before those"


def test_an_invalid_namespace_is_refused_before_any_request() -> None:
    """Otherwise the role writes CRDs and RBAC first, and the API server then refuses the namespace."""
    params = {"namespace": "Kube_Virt", **ASKED, "definitions": [], "wait": False, "wait_timeout": 0}
    nowhere = Api.connect(Endpoint(server="http://127.0.0.1:1"))

    with pytest.raises(BadArgument, match="namespace 'Kube_Virt' is not a DNS label"):
        run(params, nowhere, check_mode=False)


class Empty:
    """A cluster without any object."""

    origin = "https://api.example.com:6443"

    def get(self, *_unused: Any) -> None:
        return None

    def list(self, *_unused: Any, **_options: Any) -> list[Any]:
        return []

    def version(self) -> str:
        return "v1.36.3"

    def serves(self, _group: str) -> bool:
        return False


def test_without_a_control_plane_waiting_is_an_error() -> None:
    params = {"namespace": None, **ASKED, "definitions": [], "wait": True, "wait_timeout": 1}
    with pytest.raises(VirtError, match="nothing to wait for: the cluster has no control plane and"):
        run(params, Empty(), check_mode=False)  # type: ignore[arg-type]
    assert run(params, Empty(), check_mode=True)["owner"] == "none"  # type: ignore[arg-type]
    assert run({**params, "wait": False}, Empty(), check_mode=False)["made"] == []  # type: ignore[arg-type]


class Populated(Empty):
    """A cluster whose first node is a control-plane node."""

    def list(self, resource: Any, **_options: Any) -> list[Any]:
        label = {"node-role.kubernetes.io/control-plane": ""}
        nodes = [{"metadata": {"name": "a", "labels": label}}, {"metadata": {"name": "b"}}]
        return nodes if resource.kind == "Node" else []


def test_control_plane_nodes_that_match_the_selector_are_returned() -> None:
    params = {**ASKED, "namespace": None, "definitions": [], "wait": False, "wait_timeout": 1}

    installed = run(params, Populated(), check_mode=False)  # type: ignore[arg-type]
    assert (installed["nodes"], installed["control_plane_nodes"]) == (["a", "b"], ["a"])
    assert installed["kept_control_plane_nodes"] == [], "no taint keeps machines off"
    elsewhere = run({**params, "node_selector": {"zone": "b"}}, Populated(), check_mode=False)  # type: ignore[arg-type]
    assert elsewhere["control_plane_nodes"] == []


class Older(Empty):
    """A cluster with a machine in another launcher, on a node that is not Ready."""

    def list(self, resource: Any, **_options: Any) -> list[Any]:
        kind, status = resource.kind, {"phase": "Running", "launcherContainerImageVersion": "old"}
        item = {"kind": kind, "apiVersion": "v1", "metadata": {"namespace": "shop", "name": "web"}, "status": status}
        return [item] if kind in ("Node", "VirtualMachineInstance") else []


@pytest.mark.parametrize(("image", "names"), [("new", ["web"]), ("old", []), (None, [])])
def test_machines_in_other_launchers_are_returned_for_a_launcher_image(image: str | None, names: list[str]) -> None:
    params = {**ASKED, "namespace": None, "definitions": [], "wait": False, "wait_timeout": 1, "launcher_image": image}

    installed = run(params, Older(), check_mode=False)  # type: ignore[arg-type]

    assert [launcher["name"] for launcher in installed["in_other_launchers"]] == names
    assert (installed["nodes_not_ready"], installed["components"]) == (["web"], [])

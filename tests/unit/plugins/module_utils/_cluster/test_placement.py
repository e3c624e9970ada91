# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control-plane nodes where a Pod can run."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.placement import (
    control_plane_nodes,
    kept_control_plane_nodes,
)

ROLE = "node-role.kubernetes.io/control-plane"
LINUX = {"kubernetes.io/os": "linux"}
TAINT = {"key": ROLE, "effect": "NoSchedule"}
MASTER = {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
TOLERATED = {"key": ROLE, "operator": "Exists", "effect": "NoSchedule"}
OWN = {"key": "team", "value": "a", "effect": "NoExecute"}


def node(*taints: dict[str, str], **labels: str) -> dict[str, Any]:
    spec = {"taints": list(taints)} if taints else {}
    return {"metadata": {"name": "a", "labels": {**LINUX, ROLE: "", **labels}}, "spec": spec}


@pytest.mark.parametrize(
    "candidate",
    [
        pytest.param(node(), id="no taint"),
        pytest.param(node(TAINT), id="the usual taint"),
        pytest.param(node(TAINT, {"key": "x", "effect": "PreferNoSchedule"}), id="a taint that only advises"),
        pytest.param(
            node({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}), id="cordoned: that passes"
        ),
        pytest.param(
            node({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}), id="not Ready: so does that"
        ),
    ],
)
def test_a_control_plane_node_is_returned(candidate: dict[str, Any]) -> None:
    assert control_plane_nodes([candidate], LINUX, [TOLERATED]) == ["a"]


@pytest.mark.parametrize(
    "candidate",
    [
        pytest.param({"metadata": {"name": "a", "labels": LINUX}, "spec": {}}, id="a worker"),
        pytest.param({"metadata": {"name": "a"}}, id="one that says nothing of itself"),
        pytest.param(node(**{"kubernetes.io/os": "windows"}), id="not selected"),
        pytest.param(node(TAINT, OWN), id="a taint of somebody's"),
    ],
)
def test_a_node_where_the_pod_cannot_run_is_not_returned(candidate: dict[str, Any]) -> None:
    assert control_plane_nodes([candidate], LINUX, [TOLERATED]) == []


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        pytest.param({"operator": "Exists"}, True, id="all"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, True, id="all of that effect"),
        pytest.param({"operator": "Exists", "effect": "NoSchedule"}, False, id="all of another effect"),
        pytest.param({"key": "team", "operator": "Exists"}, True, id="the key"),
        pytest.param({"key": "teams", "operator": "Exists"}, False, id="another key"),
        pytest.param({"key": "team", "value": "a"}, True, id="the value, which is the default's operator"),
        pytest.param({"key": "team", "operator": "Equal", "value": "b"}, False, id="another value"),
        pytest.param({"key": "team"}, False, id="no value"),
        pytest.param({"key": "team", "operator": "Gt", "value": "1"}, False, id="an operator that is not known here"),
    ],
)
def test_taints_are_tolerated_as_in_the_scheduler(toleration: dict[str, str], *, is_tolerated: bool) -> None:
    assert control_plane_nodes([node(OWN)], {}, [toleration]) == (["a"] if is_tolerated else [])


def test_nodes_are_returned_in_a_stable_order() -> None:
    """Another order would be a change in a second run."""
    nodes = [{**node(), "metadata": {**node()["metadata"], "name": name}} for name in ("b", "a")]
    assert control_plane_nodes(nodes, {}, []) == ["a", "b"]


@pytest.mark.parametrize(
    ("candidate", "is_kept"),
    [
        pytest.param(node(TAINT), True, id="the usual taint"),
        pytest.param(node({"key": ROLE, "effect": "NoExecute"}), True, id="one that evicts too"),
        pytest.param(node(MASTER), True, id="that of OpenShift"),
        pytest.param(node(), False, id="no taint, as of small clusters"),
        pytest.param(node({"key": ROLE, "effect": "PreferNoSchedule"}), False, id="one that only advises"),
        pytest.param(node(OWN), False, id="a taint of somebody's"),
    ],
)
def test_a_tainted_control_plane_node_is_kept_free_of_machines(candidate: dict[str, Any], *, is_kept: bool) -> None:
    """Where virt-handler makes the node schedulable, it has machines to evict."""
    assert kept_control_plane_nodes([candidate], LINUX, [{"operator": "Exists"}]) == (["a"] if is_kept else [])


def test_a_kept_node_is_one_where_the_pod_can_run() -> None:
    assert kept_control_plane_nodes([node(TAINT)], LINUX, []) == []

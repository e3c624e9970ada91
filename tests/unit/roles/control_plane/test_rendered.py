# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of role control_plane, rendered from its options by Ansible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests.unit.roles.control_plane import canaries
from ansible_collections.virtops.kubevirt.tests.unit.roles.control_plane.rendered import DIRECTORS, ROLE, render

DIGEST = "sha256:" + "0" * 64
COMPONENTS = ("api", "controller", "handler", "node")
OPTIONS = {
    "control_plane_image_prefix": "registry.example/virt",
    "control_plane_image_tag": "1.2.3",
    "control_plane_image_digests": {"control-plane": DIGEST},
    "control_plane_image_revisions": {"control-plane": "r1", "virt-launcher": "r2"},
    "control_plane_service_monitor": "true",
    "control_plane_further_attempts": "1",
    "control_plane_run_timeout": "0",
    "control_plane_network_policies": "false",
    **{
        f"control_plane_{component}_annotations": {"example.com/part": component, "example.com/number": 1}
        for component in COMPONENTS
    },
    **{
        f"control_plane_{component}_resources": {"limits": {"memory": f"{len(component)}Gi"}}
        for component in COMPONENTS
    },
}
CONTROL_PLANE_NODE = {
    "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
}
DEMAND = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [CONTROL_PLANE_NODE]}}
WISH = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": CONTROL_PLANE_NODE}]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return render(tmp_path_factory.mktemp("rendered"), OPTIONS)


@pytest.fixture(scope="module")
def pods(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the Pod templates by component."""
    workloads = [item for item in made["definitions"] if item["kind"] in ("Deployment", "DaemonSet")]
    return {item["metadata"]["name"].removeprefix("virt-"): item["spec"]["template"] for item in workloads}


def test_an_image_is_named_by_its_digest_if_any_else_by_its_tag(pods: dict[str, Any]) -> None:
    (container,), (first,) = (pods["node"]["spec"][part] for part in ("containers", "initContainers"))
    (controller,) = pods["controller"]["spec"]["containers"]

    assert container["image"] == f"registry.example/virt/control-plane@{DIGEST}"
    assert first["image"] == "registry.example/virt/virt-launcher:1.2.3"
    assert {"name": "VIRT_LAUNCHER_IMAGE", "value": first["image"]} in controller["env"]


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_has_its_annotations_image_revisions_and_resources(component: str, pods: dict[str, Any]) -> None:
    annotations = pods[component]["metadata"]["annotations"]

    assert annotations == {
        "example.com/part": component,
        "example.com/number": "1",
        "virtops.kubevirt/image-revision": "r1 r2" if component == "node" else "r1",
    }
    (container,) = pods[component]["spec"]["containers"]
    assert container["resources"] == {"limits": {"memory": f"{len(component)}Gi"}}


def test_monitor_and_policies_are_optional(made: dict[str, Any]) -> None:
    kinds = {definition["kind"] for definition in made["definitions"]}

    assert "PodMonitor" in kinds
    assert "NetworkPolicy" not in kinds


def test_the_monitor_scrapes_a_port_of_the_components_that_it_selects(
    made: dict[str, Any], pods: dict[str, Any]
) -> None:
    (monitor,) = (definition["spec"] for definition in made["definitions"] if definition["kind"] == "PodMonitor")
    (expression,) = monitor["selector"]["matchExpressions"]
    (endpoint,) = monitor["podMetricsEndpoints"]

    for name in expression["values"]:
        pod = pods[name.removeprefix("virt-")]
        assert pod["metadata"]["labels"][expression["key"]] == name
        assert endpoint["port"] in [port["name"] for port in pod["spec"]["containers"][0]["ports"]]


def test_every_object_is_marked(made: dict[str, Any]) -> None:
    for definition in made["definitions"]:
        labels = definition["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "virtops.kubevirt"
        assert labels["app.kubernetes.io/part-of"] == "kubevirt"


def test_a_virt_handler_accepts_migrations_from_the_others_on_every_port(tmp_path: Path) -> None:
    made = render(tmp_path, {})["definitions"]
    (policy,) = (
        item for item in made if item["kind"] == "NetworkPolicy" and item["metadata"]["name"] == "virt-handler"
    )
    handler = policy["spec"]["podSelector"]["matchLabels"]

    ports = [
        port
        for rule in policy["spec"]["ingress"]
        for port in rule["ports"]
        if {"podSelector": {"matchLabels": handler}} in rule.get("from", [])
    ]

    assert ports == [{"protocol": "TCP", "port": 1024, "endPort": 65535}]


def test_the_role_never_writes_the_contents_of_a_secret(made: dict[str, Any]) -> None:
    secrets = [item for item in made["definitions"] if item["kind"] == "Secret"]
    assert len(secrets) > 1
    for item in secrets:
        assert not {"data", "stringData"} & set(item), item["metadata"]["name"]


def test_the_defaults_have_no_monitor_no_annotation_and_no_downgrade(tmp_path: Path) -> None:
    made = render(tmp_path, {}, definitions_version="99.0.0")

    kinds = {definition["kind"] for definition in made["definitions"]}
    assert "NetworkPolicy" in kinds
    assert not {"PodMonitor", "CustomResourceDefinition"} & kinds
    for definition in made["definitions"]:
        if definition["kind"] in ("Deployment", "DaemonSet"):
            assert "annotations" not in definition["spec"]["template"]["metadata"]


def test_retries_of_runs_are_configured(made: dict[str, Any], tmp_path: Path) -> None:
    reported = made["configuration"]
    configuration = reported["spec"]["configuration"]
    assert (configuration["furtherAttempts"], configuration["runTimeoutSeconds"]) == (1, 0)
    assert configuration["quarantineSeconds"] == 900
    usual = render(tmp_path, {})["configuration"]
    assert usual["spec"]["configuration"]["furtherAttempts"] == 2
    assert "runTimeoutSeconds" not in usual["spec"]["configuration"], "600, and only for what is the node's"


def test_virt_controller_and_virt_handler_get_the_same_revision(pods: dict[str, Any]) -> None:
    """It tells virt-controller whether virt-handler was rolled out with it."""
    reported = [
        next(
            item["value"]
            for item in pods[name]["spec"]["containers"][0]["env"]
            if item["name"] == "CONTROL_PLANE_IMAGE"
        )
        for name in ("controller", "handler")
    ]
    assert reported == [f"registry.example/virt/control-plane@{DIGEST} r1"] * 2


def test_workload_updates_are_not_set_by_default(tmp_path: Path) -> None:
    """The role owns every field that it applies: it would overwrite a user's value."""
    size = {"control_plane_workload_eviction_size": 3}
    (tmp_path / "usual").mkdir()
    (tmp_path / "said").mkdir()
    assert "workloadUpdateStrategy" not in render(tmp_path / "usual", size)["configuration"]["spec"]
    rendered = render(tmp_path / "said", {**size, "control_plane_workload_update_methods": ["LiveMigrate"]})
    assert rendered["configuration"]["spec"]["workloadUpdateStrategy"] == {
        "workloadUpdateMethods": ["LiveMigrate"],
        "batchEvictionSize": 3,
        "batchEvictionInterval": "1m0s",
    }


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return all objects rendered with all canaries: their JSON by Kind/name."""
    wanted = {**{name: item.value for name, item in canaries.CANARIES.items()}, **canaries.EVERYWHERE}
    made = render(
        tmp_path_factory.mktemp("canaries"), {f"control_plane_{name}": value for name, value in wanted.items()}
    )
    everything = [*made["definitions"], made["configuration"]]
    assert all(item["metadata"].get("namespace") in (None, "kube-system", "canary-namespace") for item in everything)
    return {f"{item['kind']}/{item['metadata']['name']}": json.dumps(item) for item in everything}


@pytest.mark.parametrize("name", canaries.CANARIES)
def test_an_option_appears_only_in_its_objects(name: str, objects: dict[str, str]) -> None:
    canary = canaries.CANARIES[name]

    assert {key for key, text in objects.items() if canary.text in text} == canary.where


def test_every_option_is_listed_as_rendered_or_not() -> None:
    written = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__control_plane_options"]
    listed = [*canaries.CANARIES, *canaries.EVERYWHERE, *canaries.ABSENT, *canaries.NOT_RENDERED]

    assert sorted(f"control_plane_{name}" for name in listed) == sorted(
        name for name in written if name.startswith("control_plane_")
    )


def test_options_that_are_not_rendered_are_used_by_a_task() -> None:
    used = "".join(path.read_text() for path in (ROLE / "tasks").glob("*.yml"))

    assert [name for name in canaries.NOT_RENDERED if f"control_plane_{name}" not in used] == []


def affinities(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        definition["metadata"]["name"]: definition["spec"]["template"]["spec"]["affinity"]
        for definition in made["definitions"]
        if definition["kind"] == "Deployment"
    }


def budgets(made: dict[str, Any]) -> set[Any]:
    return {
        definition["spec"]["maxUnavailable"]
        for definition in made["definitions"]
        if definition["kind"] == "PodDisruptionBudget"
    }


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([], WISH, id="none is seen"),
        pytest.param(["one"], DEMAND, id="one"),
        pytest.param(["one", "two"], DEMAND, id="several"),
    ],
)
def test_controllers_stay_on_control_plane_nodes_if_any(
    nodes: list[str], expected: dict[str, Any], tmp_path: Path
) -> None:
    """A preference competes with even spreading, and loses when there are as many replicas as nodes."""
    result = affinities(render(tmp_path, {}, control_plane_nodes=nodes))

    assert set(result) == set(DIRECTORS)
    assert [result[name]["nodeAffinity"] for name in DIRECTORS] == [expected, expected]
    apart = [result[name]["podAntiAffinity"] for name in DIRECTORS]
    assert [list(item) for item in apart] == [["preferredDuringSchedulingIgnoredDuringExecution"]] * 2, (
        "two replicas fit on one node"
    )


@pytest.mark.parametrize("asked", [{}, WISH], ids=["none at all", "a wish"])
def test_a_given_affinity_is_used_as_it_is(asked: dict[str, Any], tmp_path: Path) -> None:
    result = {"control_plane_nodes": ["one"], "kept_control_plane_nodes": ["one"]}
    made = render(tmp_path, {"control_plane_node_affinity": asked}, **result)

    assert [affinities(made)[name]["nodeAffinity"] for name in DIRECTORS] == [asked, asked]
    assert budgets(made) == {1}


@pytest.mark.parametrize(
    ("nodes", "options", "expected"),
    [
        pytest.param([], {}, 1, id="elsewhere there is room"),
        pytest.param(["one", "two"], {}, 1, id="on the other one there is"),
        pytest.param(["one"], {}, "100%", id="the only one could never be emptied"),
        pytest.param(["open"], {}, 1, id="machines run on one without the taint by themselves"),
        pytest.param(
            ["one"],
            {"control_plane_machines_on_control_plane": "true"},
            1,
            id="virt-api judges its machines' evictions",
        ),
    ],
)
def test_the_only_control_plane_node_can_be_drained(
    nodes: list[str], options: dict[str, Any], expected: Any, tmp_path: Path
) -> None:
    kept = [name for name in nodes if name != "open"]
    made = render(tmp_path, options, control_plane_nodes=nodes, kept_control_plane_nodes=kept)

    assert budgets(made) == {expected}

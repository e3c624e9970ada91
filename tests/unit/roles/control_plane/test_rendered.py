# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of role control_plane, rendered from its options with Ansible's templates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils.kubevirt_api.names import (
    CONSOLE_ORIGINS,
    CONTAINER_DISK_LIMIT,
    FURTHER_ATTEMPTS,
    QUARANTINE,
    RUN_TIMEOUT,
)
from ansible_collections.virtops.kubevirt.tests.unit.roles.control_plane import canaries
from ansible_collections.virtops.kubevirt.tests.unit.tasks import ROLES, Host, role_variables

ROLE = ROLES / "control_plane"
VARIABLES = role_variables("control_plane")
COMPONENTS = ("api", "controller", "handler", "node")
DIRECTORS = ("virt-api", "virt-controller")
FOUND = {"definitions_version": "99.0.0", "control_plane_nodes": []}
"""Newer definitions: the role renders none of its own, which takes most of the time."""
CONTROL_PLANE_NODE = {
    "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
}
DEMAND = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [CONTROL_PLANE_NODE]}}
WISH = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": CONTROL_PLANE_NODE}]}
ONLY = {"control_plane_nodes": ["one"], "kept_control_plane_nodes": ["one"]}


def render(template: str, options: dict[str, Any], **found: Any) -> Any:
    """Return a template's value. options: without their prefix, or variables of the role. found: of the cluster."""
    prefixed = {name if name[0] == "_" else f"control_plane_{name}": value for name, value in options.items()}
    return Host(ROLE, {**VARIABLES, "__control_plane_found": FOUND | found, **prefixed}).value(template)


def pods_of(definitions: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the Pod templates by component."""
    workloads = [item for item in definitions if item["kind"] in ("Deployment", "DaemonSet")]
    return {item["metadata"]["name"].removeprefix("virt-"): item["spec"]["template"] for item in workloads}


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    """Return all objects, rendered with all canaries. The last is the configuration."""
    wanted = {**{name: item.value for name, item in canaries.CANARIES.items()}, **canaries.EVERYWHERE}
    rendered: list[dict[str, Any]] = render(
        "{{ __control_plane_labelled_components + [__control_plane_configuration] }}", wanted
    )
    return rendered


@pytest.fixture(scope="module")
def pods(made: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return pods_of(made)


@pytest.fixture(scope="module")
def usual() -> list[dict[str, Any]]:
    """Return the objects of the defaults, in a cluster with one control-plane node."""
    rendered: list[dict[str, Any]] = render("{{ __control_plane_labelled_components }}", {}, **ONLY)
    return rendered


@pytest.fixture(scope="module")
def objects(made: list[dict[str, Any]]) -> dict[str, str]:
    """Return the JSON of all objects by Kind/name."""
    return {f"{item['kind']}/{item['metadata']['name']}": json.dumps(item) for item in made}


@pytest.mark.parametrize("name", canaries.CANARIES)
def test_an_option_appears_only_in_its_objects(name: str, objects: dict[str, str]) -> None:
    canary = canaries.CANARIES[name]

    assert {key for key, text in objects.items() if canary.text in text} == canary.where


def test_every_object_is_marked_and_in_the_namespace(made: list[dict[str, Any]]) -> None:
    for item in made:
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "virtops.kubevirt"
        assert labels["app.kubernetes.io/part-of"] == "kubevirt"
        assert item["metadata"].get("namespace") in (None, "kube-system", "canary-namespace")


def test_every_option_is_listed_as_rendered_or_not() -> None:
    listed = [*canaries.CANARIES, *canaries.EVERYWHERE, *canaries.ABSENT, *canaries.NOT_RENDERED]

    assert sorted(f"control_plane_{name}" for name in listed) == sorted(
        name for name in VARIABLES["__control_plane_options"] if name.startswith("control_plane_")
    )


def test_options_that_are_not_rendered_are_used_by_a_task() -> None:
    used = "".join(path.read_text() for path in (ROLE / "tasks").glob("*.yml"))

    assert [name for name in canaries.NOT_RENDERED if f"control_plane_{name}" not in used] == []


def test_an_image_is_named_by_its_digest_if_any_else_by_its_tag(pods: dict[str, Any]) -> None:
    (container,), (first,) = (pods["node"]["spec"][part] for part in ("containers", "initContainers"))
    (controller,) = pods["controller"]["spec"]["containers"]

    assert container["image"] == f"canary.example/prefix/control-plane@{canaries.DIGEST}"
    assert first["image"] == "canary.example/prefix/virt-launcher:canary-tag"
    assert {"name": "VIRT_LAUNCHER_IMAGE", "value": first["image"]} in controller["env"]


def seconds_until_restarted(probe: dict[str, Any]) -> int:
    """Return for how long a process may be silent."""
    return int(probe["periodSeconds"] * (probe["failureThreshold"] - 1) + probe["timeoutSeconds"])


@pytest.mark.parametrize(("component", "seconds"), [("api", 100), ("controller", 80), ("handler", 100)])
def test_a_busy_process_is_not_restarted(component: str, seconds: int, pods: dict[str, Any]) -> None:
    """As long as upstream's. On a busy machine an answer takes seconds."""
    (container,) = pods[component]["spec"]["containers"]

    assert seconds_until_restarted(container["livenessProbe"]) == seconds
    assert container["readinessProbe"]["timeoutSeconds"] == container["livenessProbe"]["timeoutSeconds"] == 10
    assert container["readinessProbe"]["periodSeconds"] == 2, "a role waits for it"


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_has_its_annotations_as_texts_and_the_revisions_of_its_images(
    component: str, pods: dict[str, Any]
) -> None:
    assert {
        "canary": f"of-{component}",
        "number": "1",
        "virtops.kubevirt/image-revision": "canary-first canary-revision" if component == "node" else "canary-first",
    }.items() <= pods[component]["metadata"]["annotations"].items()


def test_virt_controller_and_virt_handler_get_the_same_revision(pods: dict[str, Any]) -> None:
    """By it virt-controller sees whether virt-handler was rolled out with it."""
    for name in ("controller", "handler"):
        environment = {item["name"]: item.get("value") for item in pods[name]["spec"]["containers"][0]["env"]}
        image = f"canary.example/prefix/control-plane@{canaries.DIGEST} canary-first"
        assert environment["CONTROL_PLANE_IMAGE"] == image


def test_the_monitor_scrapes_a_port_of_the_components_that_it_selects(
    made: list[dict[str, Any]], pods: dict[str, Any]
) -> None:
    (monitor,) = (item["spec"] for item in made if item["kind"] == "PodMonitor")
    (service,) = (item["spec"] for item in made if item["metadata"]["name"] == "kubevirt-prometheus-metrics")
    (endpoint,), (port,) = monitor["podMetricsEndpoints"], service["ports"]
    labelled = {name for name, pod in pods.items() if "prometheus.kubevirt.io" in pod["metadata"]["labels"]}

    assert labelled == {"api", "controller", "handler"}
    assert monitor["selector"]["matchLabels"] == service["selector"] == {"prometheus.kubevirt.io": "true"}
    for name in labelled:
        ports = pods[name]["spec"]["containers"][0]["ports"]
        assert {"name": endpoint["port"], "containerPort": 8443} in ports
    assert (port["port"], port["targetPort"], endpoint["scheme"]) == (443, endpoint["port"], "https")


def test_the_role_never_writes_the_contents_of_a_secret(made: list[dict[str, Any]]) -> None:
    secrets = [item for item in made if item["kind"] == "Secret"]
    assert len(secrets) > 1
    for item in secrets:
        assert not {"data", "stringData"} & set(item), item["metadata"]["name"]


def test_a_virt_handler_accepts_migrations_from_the_others_on_every_port(usual: list[dict[str, Any]]) -> None:
    (policy,) = (
        item for item in usual if item["kind"] == "NetworkPolicy" and item["metadata"]["name"] == "virt-handler"
    )
    handler = policy["spec"]["podSelector"]["matchLabels"]

    ports = [
        port
        for rule in policy["spec"]["ingress"]
        for port in rule["ports"]
        if {"podSelector": {"matchLabels": handler}} in rule.get("from", [])
    ]

    assert ports == [{"protocol": "TCP", "port": 1024, "endPort": 65535}]


def test_the_defaults_have_policies_and_neither_monitor_nor_annotations(usual: list[dict[str, Any]]) -> None:
    kinds = {item["kind"] for item in usual}
    assert "NetworkPolicy" in kinds
    assert "PodMonitor" not in kinds
    assert [name for name, pod in pods_of(usual).items() if "annotations" in pod["metadata"]] == []


def test_monitor_and_policies_are_optional() -> None:
    files = ["network-policies.yaml.j2", "pod-monitor.yaml.j2"]
    options = {"network_policies": "false", "service_monitor": "true", "__control_plane_manifests": files}

    assert render("{{ __control_plane_components | map(attribute='kind') | list }}", options) == ["PodMonitor"]


@pytest.mark.parametrize(("version", "is_rendered"), [(None, True), ("0.1.0", True), ("0.1.1", False)])
def test_definitions_are_not_downgraded(version: str | None, is_rendered: bool) -> None:
    options = {"__control_plane_components": [], "__control_plane_crds": [{"kind": "CustomResourceDefinition"}]}

    assert bool(render("{{ __control_plane_definitions }}", options, definitions_version=version)) is is_rendered


def test_there_is_a_definition_of_every_kind() -> None:
    names = render("{{ __control_plane_crds | map(attribute='spec.names.plural') | list }}", {})
    assert names == [item["plural"] for item in render("{{ __control_plane_kinds }}", {})]


def configuration(**options: Any) -> dict[str, Any]:
    spec: dict[str, Any] = render("{{ __control_plane_configuration }}", options)["spec"]
    return spec


def settings(**options: Any) -> dict[str, str]:
    annotations: dict[str, str] = render("{{ __control_plane_configuration }}", options)["metadata"]["annotations"]
    return annotations


def test_retries_of_runs_are_configured() -> None:
    """As annotations: a client of KubeVirt that writes the whole object would drop fields."""
    given = settings(further_attempts="1", run_timeout="0")
    assert (given[FURTHER_ATTEMPTS], given[RUN_TIMEOUT], given[QUARANTINE]) == ("1", "0", "900")
    default = settings()
    assert (default[FURTHER_ATTEMPTS], default[CONTAINER_DISK_LIMIT]) == ("2", "64Gi")
    assert RUN_TIMEOUT not in default, "600 s, and only if the node is at fault"


def test_pages_from_the_address_that_the_role_uses_may_open_streams_by_default() -> None:
    rendered = render("{{ __control_plane_configuration }}", {}, server_origin="https://api.example.com:6443")
    assert rendered["metadata"]["annotations"][CONSOLE_ORIGINS] == "https://api.example.com:6443"
    assert settings(console_origins=[])[CONSOLE_ORIGINS] == ""


def test_kubevirt_has_all_fields_of_the_configuration() -> None:
    """Fields of ours would be lost with the next write of its clients."""
    ours = {"containerDiskLimit", "furtherAttempts", "runTimeoutSeconds", "quarantineSeconds"}
    assert not ours & set(configuration(run_timeout="60")["configuration"])


def test_workload_updates_are_not_set_by_default() -> None:
    """The role owns every field that it applies: it would overwrite a user's value."""
    assert "workloadUpdateStrategy" not in configuration(workload_eviction_size=3)
    given = configuration(workload_eviction_size=3, workload_update_methods=["LiveMigrate"])
    assert given["workloadUpdateStrategy"] == {
        "workloadUpdateMethods": ["LiveMigrate"],
        "batchEvictionSize": 3,
        "batchEvictionInterval": "1m0s",
    }


def test_virt_api_and_virt_controller_stay_on_the_control_plane_node_and_can_be_drained(
    usual: list[dict[str, Any]],
) -> None:
    """Two replicas fit on one node, and both may leave it together."""
    affinities = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]["affinity"]
        for item in usual
        if item["kind"] == "Deployment"
    }
    assert sorted(affinities) == sorted(DIRECTORS)
    for affinity in affinities.values():
        assert affinity["nodeAffinity"] == DEMAND
        assert list(affinity["podAntiAffinity"]) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    budgets = [item["spec"]["maxUnavailable"] for item in usual if item["kind"] == "PodDisruptionBudget"]
    assert set(budgets) == {"100%"}


@pytest.mark.parametrize(
    ("nodes", "options", "affinity", "budget"),
    [
        pytest.param([], {}, WISH, 1, id="no control-plane node is seen"),
        pytest.param(["one", "two"], {}, DEMAND, 1, id="the other one has room"),
        pytest.param(["one"], {}, DEMAND, "100%", id="the only one could never be drained"),
        pytest.param(["open"], {}, DEMAND, 1, id="without a taint it has machines to evict, by virt-api"),
        pytest.param(["one"], {"machines_on_control_plane": "true"}, DEMAND, 1, id="so it has with the option"),
        pytest.param(["one"], {"node_affinity": {}}, {}, 1, id="no affinity is wanted"),
        pytest.param(["one"], {"node_affinity": WISH}, WISH, 1, id="a preference is wanted"),
    ],
)
def test_affinity_and_disruption_budget_follow_from_the_control_plane_nodes(
    nodes: list[str], options: dict[str, Any], affinity: dict[str, Any], budget: Any
) -> None:
    """A preference competes with even spreading, and loses when there are as many replicas as nodes."""
    kept = [name for name in nodes if name != "open"]
    both = "{{ [control_plane_node_affinity, __control_plane_budget] }}"

    assert render(both, options, control_plane_nodes=nodes, kept_control_plane_nodes=kept) == [affinity, budget]

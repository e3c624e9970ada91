# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's manifests and virt-api must agree on paths, Service, versions and exempted accounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import jinja2
import pytest
import yaml

from controlplane.api.admission.verdict import Request, Settings, review
from controlplane.api.objects.decode import decode_kubevirt
from controlplane.api.registry import KINDS, Kind
from controlplane.api.schema.generate_crds import LIST
from controlplane.http_server.connection import MAX_HEADER_BYTES
from controlplane.virt_api.admission.webhook import MAX_REVIEW_BYTES
from controlplane.virt_api.http.identity import WebhookClients
from controlplane.virt_api.http.routes import EVICTION, GROUP, MIGRATION, TABLE, VERBS, VERSIONS, VM, VMI, WEBHOOKS
from controlplane.virt_api.server import CONNECTIONS, REVIEW_BYTES, REVIEW_THREADS
from controlplane.virt_api.settings import SECRET_NAME, parse
from controlplane.virt_controller.certificates.observe import secrets
from controlplane.virt_controller.certificates.roles import ROLES
from controlplane.virt_controller.settings import read_settings
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from controlplane.virt_controller.vmi.world import pod_name
from controlplane.virt_node.workers import LIMIT
from tests.controlplane.virt_api.served import an_authority
from tests.controlplane.virt_controller.builders import a_vmi

MIB = 1024 * 1024
ROOT = Path(__file__).parents[3]
ROLE = ROOT / "roles" / "control_plane"
TEMPLATES = ROLE / "templates"
IMAGES = {
    "__control_plane_image": "control-plane:1",
    "__control_plane_image_name": "control-plane:1",
    "__control_plane_launcher_image": "virt-launcher:1",
}
USER = {"__control_plane_handler_uid": 60107}
CONTROL_PLANE_NODE = "node-role.kubernetes.io/control-plane"


def render(name: str, **options: Any) -> list[dict[str, Any]]:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, autoescape=False)
    environment.filters.update(to_json=json.dumps, bool=bool)  # Ansible's
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    own = {
        "control_plane_namespace": "virt",
        "__control_plane_kinds": yaml.safe_load(LIST.read_text()),
        "control_plane_node_affinity": {},  # this and the next come from preflight: tests/unit/roles
        "__control_plane_budget": 1,
        "control_plane_console_origins": [],  # by default from the cluster
        **IMAGES,
        **USER,
    }
    text = environment.from_string((TEMPLATES / name).read_text()).render({**defaults, **own, **options})
    return [document for document in yaml.safe_load_all(text) if document]


def webhook_paths() -> list[tuple[str, dict[str, Any]]]:
    return [(manifest["kind"], hook) for manifest in render("webhooks.yaml.j2") for hook in manifest["webhooks"]]


def workloads(name: str, **options: Any) -> list[dict[str, Any]]:
    """Return the Deployments and DaemonSets of a component."""
    manifests = render(f"{name}.yaml.j2", **options)
    return [manifest for manifest in manifests if manifest["kind"] in {"Deployment", "DaemonSet"}]


def test_the_configured_webhooks_are_served() -> None:
    def stage(kind: str, hook: dict[str, Any]) -> str:
        if hook["rules"][0]["resources"] == ["pods/eviction"]:
            return "evict"
        if hook["clientConfig"]["service"]["path"] == MIGRATION:
            return "migrate"
        return "mutate" if kind.startswith("Mutating") else "validate"

    stages = {hook["clientConfig"]["service"]["path"]: stage(kind, hook) for kind, hook in webhook_paths()}

    assert stages == dict(WEBHOOKS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)
def test_every_write_of_a_kind_and_its_status_is_reviewed(kind: Kind) -> None:
    plural = kind.resource.plural
    reviewed = {
        (resource, operation)
        for stage, hook in webhook_paths()
        for rule in hook["rules"]
        for resource in rule["resources"]
        for operation in rule["operations"]
        if stage.startswith("Validating") and rule["apiGroups"] == [kind.resource.group]
    }

    assert reviewed >= {
        (resource, write) for resource in (plural, f"{plural}/status") for write in ("CREATE", "UPDATE")
    }


def test_users_may_create_their_kinds_and_read_the_others() -> None:
    granted = {
        role: {
            (resource, verb)
            for manifest in render("rbac-users.yaml.j2")
            for rule in manifest.get("rules", [])
            if manifest["metadata"]["name"] == f"kubevirt.io:{role}" and rule["apiGroups"] != [GROUP]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        for role in ("admin", "edit", "view")
    }

    for kind in KINDS:
        plural = kind.resource.plural
        is_for_editors = kind.is_users and not kind.own_role
        assert ((plural, "create") in granted["edit"]) is is_for_editors
        assert ((plural, "deletecollection") in granted["admin"]) is is_for_editors
        assert kind.is_users <= ({(plural, "watch")} <= granted["admin"] & granted["edit"] & granted["view"])
        assert {(plural, "get"), (plural, "list")} <= granted["edit"] & granted["view"]
        assert (plural, "create") not in granted["view"]
        is_scaled = kind.scale is not None
        assert ((f"{plural}/scale", "patch") in granted["edit"] & granted["admin"]) is is_scaled
        assert ((f"{plural}/scale", "get") in granted["view"]) is is_scaled
        assert (f"{plural}/scale", "patch") not in granted["view"]


def granted_subresources(role: str) -> set[tuple[str, str]]:
    """Return the subresources that a role grants, in any group, except scale."""
    rules = (
        rule
        for manifest in render("rbac-users.yaml.j2")
        for rule in manifest.get("rules", [])
        if manifest["metadata"]["name"] == f"kubevirt.io:{role}"
    )
    return {
        (f"{group}/{resource}", verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if "/" in resource.removesuffix("/scale")
    }


IN_NO_ROLE = {f"{VM}/migrate", f"{VMI}/vsock", f"{VMI}/backup", f"{VMI}/redefine-checkpoint"}
ENTERED = {"console", "vnc", "vnc/screenshot", "portforward", "usbredir"}
"""Ways into a guest, which who may only read does not get."""


@pytest.mark.parametrize("role", ["admin", "edit", "view"])
def test_roles_grant_subresources_in_their_own_group(role: str) -> None:
    """As upstream, also what is not built. A right to virtualmachines/start in the group kubevirt.io has no effect."""
    rows = {(f"{row.resource}/{row.path}", VERBS[row.method]) for row in TABLE}
    segments = {(f"{resource}/evacuate", "update") for resource in (VM, VMI)}
    segments |= {(f"{VMI}/sev", verb) for verb in ("get", "update")}

    granted = {rule for rule in rows | segments if rule[0] not in IN_NO_ROLE}
    if role == "edit":
        granted -= {(f"{VMI}/vnc/screenshot", "get")}
    if role == "view":
        granted = {rule for rule in granted if rule[1] == "get" and rule[0].partition("/")[2] not in ENTERED}
    assert granted_subresources(role) == {(f"{GROUP}/{name}", verb) for name, verb in granted}


UNBUILT = {
    "kubevirt.io": {"virtualmachineinstancepresets"},
    "snapshot.kubevirt.io": {"virtualmachinesnapshots", "virtualmachinesnapshotcontents", "virtualmachinerestores"},
    "backup.kubevirt.io": {"virtualmachinebackups", "virtualmachinebackuptrackers"},
    "export.kubevirt.io": {"virtualmachineexports"},
    "clone.kubevirt.io": {"virtualmachineclones"},
    "instancetype.kubevirt.io": {
        "virtualmachineinstancetypes",
        "virtualmachineclusterinstancetypes",
        "virtualmachinepreferences",
        "virtualmachineclusterpreferences",
    },
}


@pytest.mark.parametrize(
    ("role", "verb"), [("admin", "deletecollection"), ("edit", "create"), ("view", "watch")], ids=str
)
def test_roles_have_upstreams_kinds_that_are_not_built(role: str, verb: str) -> None:
    """The API server then says that there is no such kind, not that the user lacks a right."""
    (manifest,) = (m for m in render("rbac-users.yaml.j2") if m["metadata"]["name"] == f"kubevirt.io:{role}")
    granted = {
        (rule["apiGroups"][0], resource)
        for rule in manifest["rules"]
        for resource in rule["resources"]
        if verb in rule["verbs"]
    }

    assert granted >= {(group, plural) for group, plurals in UNBUILT.items() for plural in plurals}
    assert (verb in ("create", "deletecollection")) is (role != "view")


def test_no_role_of_users_has_a_wildcard() -> None:
    rules = [rule for manifest in render("rbac-users.yaml.j2") for rule in manifest.get("rules", [])]

    assert rules
    assert not [rule for rule in rules if "*" in (*rule["resources"], *rule["verbs"], *rule["apiGroups"])]


def test_everybody_may_ask_for_the_version_the_image_of_guestfs_and_the_console_page() -> None:
    documents = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in render("rbac-users.yaml.j2")
    }
    rights = documents["ClusterRole", "kubevirt.io:default"]["rules"]

    resources = ["version", "guestfs", "console", "console/package"]
    assert {"apiGroups": [GROUP], "resources": resources, "verbs": ["get", "list"]} in rights
    for role in ("kubevirt.io:default", "instancetype.kubevirt.io:view"):
        (subject,) = documents["ClusterRoleBinding", role]["subjects"]
        assert (subject["kind"], subject["name"]) == ("Group", "system:authenticated")


def test_the_migrate_role_is_not_aggregated() -> None:
    """As upstream: an administrator may bind it."""
    documents = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in render("rbac-users.yaml.j2")
    }
    role = documents["ClusterRole", "kubevirt.io:migrate"]
    everything = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]

    assert role["metadata"]["labels"] == {"kubevirt.io": ""}, "it is not aggregated"
    assert role["rules"] == [
        {"apiGroups": [GROUP], "resources": ["virtualmachines/migrate"], "verbs": ["update"]},
        {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstancemigrations"], "verbs": everything},
    ]
    assert not [
        manifest
        for manifest in documents.values()
        if manifest.get("roleRef", {}).get("name") == role["metadata"]["name"]
    ]
    assert {kind.own_role for kind in KINDS if kind.own_role} == {role["metadata"]["name"]}


def test_virt_api_may_list_and_create_migrations() -> None:
    rules = [rule for manifest in render("rbac-api.yaml.j2") for rule in manifest.get("rules", [])]
    (ours,) = [rule for rule in rules if "virtualmachineinstancemigrations" in rule["resources"]]

    assert (ours["resources"], ours["verbs"]) == (["virtualmachineinstancemigrations"], ["list", "create"])
    assert not [rule for rule in rules if "*" in (*rule["resources"], *rule["verbs"], *rule["apiGroups"])]


@pytest.mark.parametrize("hook", [hook for _unused, hook in webhook_paths()], ids=lambda hook: hook["name"])
def test_webhooks_fail_closed_and_exempt_only_our_accounts(hook: dict[str, Any]) -> None:
    is_eviction = hook["clientConfig"]["service"]["path"] == EVICTION
    assert hook["failurePolicy"] == "Fail"
    assert hook["matchPolicy"] == "Equivalent"
    assert hook["sideEffects"] == ("NoneOnDryRun" if is_eviction else "None")
    assert hook["timeoutSeconds"] == 10
    assert "namespaceSelector" not in hook
    assert "objectSelector" not in hook
    (condition,) = hook["matchConditions"]
    if is_eviction:  # all accounts are reviewed, but only Pods with the name of a launcher
        prefix = pod_name(a_vmi(), 1).removesuffix(pod_name(a_vmi(), 1).removeprefix("virt-launcher-"))
        assert condition["expression"] == f"request.name.startsWith('{prefix}')"
    else:
        assert "'system:serviceaccount:virt:'" in condition["expression"]
    assert hook["clientConfig"]["service"]["namespace"] == "virt"
    assert "caBundle" not in hook["clientConfig"]


def test_the_aggregated_versions_are_served() -> None:
    services = render("apiservice.yaml.j2")

    assert [service["spec"]["version"] for service in services] == list(VERSIONS)
    assert {service["spec"]["group"] for service in services} == {GROUP}
    assert "caBundle" not in services[0]["spec"]


def test_virt_api_may_read_only_its_secrets_and_the_front_proxy_configuration() -> None:
    documents = render("rbac-api.yaml.j2")
    identities = [
        (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"])
        for document in documents
    ]
    rules = [rule for document in documents for rule in document.get("rules", []) if "secrets" in rule["resources"]]

    assert len(identities) == len(set(identities))
    assert [rule["resourceNames"] for rule in rules] == [[SECRET_NAME, "kubevirt-virt-api-client-certs"]]
    assert ("RoleBinding", "virt", "kubevirt-apiserver") in identities
    assert ("RoleBinding", "kube-system", "kubevirt-apiserver-authentication-reader") in identities


def test_each_pair_is_readable_only_by_the_account_that_uses_it() -> None:
    """Only virt-controller, the issuer, reads the CA's key. No account may read all Secrets, and no Pod mounts one.

    virt-handler reads none: a captured node gives access to no key of the control plane.
    """
    readers: dict[str, set[str]] = {}
    for template, account in (("rbac-api", "virt-api"), ("rbac-handler", "virt-handler")):
        for rule in (rule for manifest in render(f"{template}.yaml.j2") for rule in manifest.get("rules", [])):
            if {"secrets", "*"} & set(rule["resources"]):
                assert set(rule["verbs"]) == {"get", "list", "watch"}
                for name in rule["resourceNames"]:
                    readers.setdefault(name, set()).add(account)

    assert readers == {role.secret: {"virt-api"} for role in ROLES if role.name.startswith("virt-api/")}
    mounted = [render(f"{name}.yaml.j2") for name in ("virt-api", "virt-controller", "virt-handler", "virt-node")]
    assert not [role.secret for role in ROLES if role.secret in json.dumps(mounted)]


def test_virt_controller_may_write_only_its_secrets_by_name() -> None:
    rules = [
        rule
        for manifest in render("rbac-controller.yaml.j2")
        for rule in manifest.get("rules", [])
        if {"secrets", "*"} & set(rule["resources"])
    ]
    names = [manifest["metadata"]["name"] for manifest in render("secrets.yaml.j2")]

    (rule,) = rules
    assert rule["resourceNames"] == names == [key.name for _unused, key in secrets("virt")]
    assert {"create", "patch"} <= set(rule["verbs"])
    assert "delete" not in rule["verbs"]


def test_virt_controller_reads_leases_of_its_namespace_and_writes_its_own() -> None:
    rules = [
        (manifest["kind"], rule.get("resourceNames"), set(rule["verbs"]))
        for manifest in render("rbac-controller.yaml.j2")
        for rule in manifest.get("rules", [])
        if "leases" in rule["resources"]
    ]

    assert rules == [
        ("Role", None, {"create", "get", "list", "watch"}),
        ("Role", ["virt-controller"], {"get", "update", "patch"}),
    ]


@pytest.mark.parametrize("name", ["virt-api", "virt-controller"])
def test_deployments_tolerate_control_plane_nodes(name: str) -> None:
    """Whether they run only there is an option of the role."""
    (deployment,) = (manifest for manifest in render(f"{name}.yaml.j2") if manifest["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]

    assert spec["tolerations"] == [
        {"key": CONTROL_PLANE_NODE, "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
    ], "a node that is kept for what the cluster needs keeps what directs its machines"


def the_environment(name: str, **options: Any) -> dict[str, Any]:
    (workload,) = workloads(name, **options)
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in container["env"]}


def test_the_webhook_clients_of_the_role_are_those_of_virt_api() -> None:
    pem = an_authority("reviewers").certificate.decode()
    environment = the_environment(
        "virt-api", control_plane_webhook_client_ca=pem, control_plane_webhook_client_names=["a, b", "c"]
    )

    assert webhook_clients(environment) == WebhookClients(pem.encode(), frozenset({"a, b", "c"}))
    assert webhook_clients(the_environment("virt-api")) is None


@pytest.mark.parametrize(
    ("name", "variable"),
    [("virt-api", "LISTEN_ADDRESS"), ("virt-controller", "HEALTH_ADDRESS"), ("virt-handler", "HEALTH_ADDRESS")],
)
def test_components_listen_on_the_address_of_their_pod(name: str, variable: str) -> None:
    assert the_environment(name)[variable] == {"fieldRef": {"fieldPath": "status.podIP"}}


def the_ports(name: str) -> dict[str, set[str]]:
    """Return the ports of a component's containers, by the label of its Pods."""
    (workload,) = workloads(name)
    template = workload["spec"]["template"]
    ports = {port["name"] for container in template["spec"]["containers"] for port in container.get("ports", [])}
    return {template["metadata"]["labels"]["kubevirt.io"]: ports}


def allowed(**options: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the ingress rules of each component, by the label of its Pods."""
    rules = {}
    for policy in render("network-policies.yaml.j2", **options):
        assert policy["metadata"]["namespace"] == "virt"
        assert policy["spec"]["policyTypes"] == ["Ingress"]
        selector = policy["spec"]["podSelector"]
        (expression,) = selector.get("matchExpressions", [{"key": "kubevirt.io", "operator": "In", "values": []}])
        assert (expression["key"], expression["operator"]) == ("kubevirt.io", "In")
        for label in [*selector.get("matchLabels", {}).values(), *expression["values"]]:
            assert label not in rules, "one policy per component"
            rules[label] = policy["spec"]["ingress"]
    return rules


def is_of(rule: dict[str, Any], port: str) -> bool:
    return [port_entry["port"] for port_entry in rule["ports"]] == [port]


MIGRATIONS = 1024
"""The first port of the range from which each migration gets a port."""


def test_network_policies_open_only_the_served_ports() -> None:
    components = ("virt-api", "virt-controller", "virt-handler", "virt-node")
    served: dict[str, set[str | int]] = {
        label: {*ports} for name in components for label, ports in the_ports(name).items()
    }

    opened = {label: {port["port"] for rule in rules for port in rule["ports"]} for label, rules in allowed().items()}

    served["virt-handler"] |= {MIGRATIONS}
    assert opened == served
    closed = {
        port["port"]: rule["from"]
        for rules in allowed().values()
        for rule in rules
        for port in rule["ports"]
        if "from" in rule
    }
    assert closed == {
        "endpoint": [{"podSelector": {"matchLabels": {"kubevirt.io": "virt-api"}}}],
        MIGRATIONS: [{"podSelector": {"matchLabels": {"kubevirt.io": "virt-handler"}}}],
    }, "harmless by default"


def test_metrics_can_be_restricted_while_virt_api_stays_open() -> None:
    sources = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]

    rules = allowed(control_plane_metrics_from=sources)

    health = [rule for name in ("virt-controller", "virt-handler") for rule in rules[name] if is_of(rule, "metrics")]
    assert [rule["from"] for rule in health] == [sources, sources]
    assert "from" not in rules["virt-api"][0]


@pytest.mark.parametrize("name", ["virt-api", "virt-controller", "virt-handler", "virt-node"])
def test_the_termination_message_has_the_end_of_the_log(name: str) -> None:
    """The role reads it there while it waits for the component."""
    (workload,) = workloads(name)
    spec = workload["spec"]["template"]["spec"]

    for container in (*spec["containers"], *spec.get("initContainers", [])):
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


@pytest.mark.parametrize("policy", ["Always", "IfNotPresent", "Never"])
def test_the_pull_policy_applies_to_launchers_too(policy: str) -> None:
    (configured,) = render("kubevirt.yaml.j2", control_plane_image_pull_policy=policy)
    request = Request(operation="CREATE", kind="KubeVirt", user="admin", uid="u", obj=configured)
    assert review(request, Settings()).problems == ()

    configuration = decode_kubevirt(configured).spec.configuration
    pod = build_launcher_pod(a_vmi(), attempt=1, image="virt-launcher:1", configuration=configuration)

    assert [container["imagePullPolicy"] for container in pod["spec"]["containers"]] == [policy]


COMPONENTS = ("virt-api", "virt-controller", "virt-handler", "virt-node")


def workload(name: str, **options: Any) -> dict[str, Any]:
    (manifest,) = workloads(name, **options)
    return cast("dict[str, Any]", manifest["spec"])


@pytest.mark.parametrize("name", COMPONENTS)
def test_image_pull_secrets_reach_every_component(name: str) -> None:
    spec = workload(name, control_plane_image_pull_secrets=["one", "two"])["template"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    assert not workload(name)["template"]["spec"]["imagePullSecrets"]


def test_image_pull_secrets_reach_launchers() -> None:
    (container,) = workload("virt-controller", control_plane_image_pull_secrets=["one", "two"])["template"]["spec"][
        "containers"
    ]
    environment = {variable["name"]: variable.get("value", "from a field") for variable in container["env"]}
    assert read_settings(environment).image_pull_secrets == ("one", "two")


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_run_on_nodes_of_their_images_architecture(name: str) -> None:
    chosen = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    assert workload(name)["template"]["spec"]["nodeSelector"] == chosen


@pytest.mark.parametrize("name", ["virt-handler", "virt-node"])
def test_placement_and_update_strategy_are_options(name: str) -> None:
    affinity: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    rendered = workload(
        name,
        control_plane_workload_node_selector={"machines": "here"},
        control_plane_workload_node_affinity=affinity,
        control_plane_workload_tolerations=[],
        control_plane_workload_max_unavailable="25%",
    )
    spec = rendered["template"]["spec"]
    assert (spec["nodeSelector"], spec["affinity"]["nodeAffinity"]) == ({"machines": "here"}, affinity)
    assert spec["tolerations"] == []
    assert rendered["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "25%"


def test_all_connections_and_reviews_fit_in_virt_apis_memory_limit() -> None:
    """aiohttp stores a header twice, as bytes and as text; asyncio reads 256 KiB at once."""
    process, tls, header = 60 * MIB, MIB // 3, 2 * (MAX_HEADER_BYTES + MIB // 4)
    review = 20 * MAX_REVIEW_BYTES
    limit = memory_limit("virt-api.yaml.j2", "Deployment")
    assert process + CONNECTIONS * (tls + header) + REVIEW_BYTES + REVIEW_THREADS * review <= limit


def test_a_dozen_hostile_launchers_fit_in_virt_handlers_memory_limit() -> None:
    """Measured: 48 MiB for the process, less than 64 KiB for each launcher, 32 MiB for each endless message."""
    base, launchers, hostile = 48 * MIB, 250 * MIB // 16, 12 * 32 * MIB
    assert base + launchers + hostile <= memory_limit("virt-handler.yaml.j2", "DaemonSet")


def test_all_concurrent_work_of_virt_node_fits_in_its_memory_limit() -> None:
    """Measured: 33 MiB for the process, and 20 MiB for the threads of 256 launchers."""
    base, threads = 33 * MIB, LIMIT * 20 * MIB // 256
    assert base + 4 * threads <= memory_limit("virt-node.yaml.j2", "DaemonSet")


def memory_limit(template: str, kind: str) -> int:
    (workload,) = (manifest for manifest in render(template) if manifest["kind"] == kind)
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return int(container["resources"]["limits"]["memory"].removesuffix("Mi")) * MIB


def webhook_clients(environment: dict[str, Any]) -> WebhookClients | None:
    webhook = {name: value for name, value in environment.items() if "WEBHOOK" in name}
    return parse({"POD_NAMESPACE": "virt", **webhook}).webhook_clients

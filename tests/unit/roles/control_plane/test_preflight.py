# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusals of role control_plane before any write, with their messages. The conditions are plain Jinja."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
EMPTY: dict[str, Any] = {
    "owner": "none",
    "evidence": "",
    "version": None,
    "namespace": None,
    "namespace_owner": "none",
    "namespace_terminating": False,
    "server_version": "1.36.3",
    "nodes": ["a", "b"],
    "nodes_without_image_volumes": [],
    "has_pod_monitors": False,
}


def boolean(value: Any) -> bool:
    """Like Ansible's filter."""
    return str(value).lower() in ("true", "yes", "on", "1")


def constants() -> dict[str, Any]:
    """Return the role's own variables that are not templates."""
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    return {name: value for name, value in variables.items() if "{{" not in str(value)}


def is_version(value: str, other: str, operator: str) -> bool:
    """Like Ansible's test."""
    one, two = ([int(part) for part in text.split(".")] for text in (value, other))
    return {"<=": one <= two, ">=": one >= two, ">": one > two}[operator]


def refusal(found: dict[str, Any] | None = None, **options: Any) -> str | None:
    """Return the message of the first failing assertion; None when all hold."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.tests["version"] = is_version
    environment.tests["match"] = lambda value, pattern: re.match(pattern, value) is not None
    environment.filters["bool"] = boolean
    environment.filters["difference"] = lambda ours, theirs: [item for item in ours if item not in theirs]
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    known = {**constants(), "__control_plane_found": {**EMPTY, **(found or {})}}
    variables = {**defaults, **known, **options}

    def holds(conditions: str | list[str]) -> bool:
        each = [conditions] if isinstance(conditions, str) else conditions
        return all(environment.compile_expression(item, undefined_to_none=False)(**variables) for item in each)

    for task in yaml.safe_load((ROLE / "tasks/preflight.yml").read_text()):
        check = task.get("ansible.builtin.assert")
        if check and holds(task.get("when", [])) and not holds(check["that"]):
            return environment.from_string(check["fail_msg"]).render(variables)
    return None


def test_an_empty_cluster_is_accepted() -> None:
    assert refusal() is None


def test_our_own_and_a_handed_over_namespace_are_accepted() -> None:
    assert refusal({"namespace_owner": "ours"}) is None


def test_a_foreign_namespace_is_refused_with_a_remedy() -> None:
    message = refusal({"namespace_owner": "other"}, control_plane_namespace="production")

    assert message is not None
    assert "Namespace production exists" in message
    assert "another name" in message
    assert "kubectl label --overwrite namespace production app.kubernetes.io/managed-by=virtops.kubevirt" in message
    assert "privileged" in message
    assert "removed" in message


def test_a_namespace_being_deleted_is_refused_for_an_installation_and_not_for_a_removal() -> None:
    going = {"namespace_owner": "ours", "namespace_terminating": True}
    message = refusal(going)

    assert message is not None
    assert "Namespace kubevirt is being deleted" in message
    assert "Run this again when it is gone" in message
    assert refusal(going, control_plane_state="absent") is None


@pytest.mark.parametrize("allowed", [False, "false", "no"])
def test_a_downgrade_is_refused(allowed: Any) -> None:
    message = refusal({"owner": "ours", "version": "0.2.0"}, control_plane_allow_downgrade=allowed)

    assert message is not None
    assert "Version 0.2.0 of this control plane is installed, newer than 0.1.0 of this role" in message
    assert "set control_plane_allow_downgrade to true" in message


@pytest.mark.parametrize("allowed", [True, "true"])
def test_a_downgrade_is_accepted_with_the_option(allowed: Any) -> None:
    assert refusal({"owner": "ours", "version": "0.2.0"}, control_plane_allow_downgrade=allowed) is None


@pytest.mark.parametrize("version", ["1.35.9", "1.9.0"])
def test_a_cluster_that_is_too_old_is_refused_with_a_remedy(version: str) -> None:
    message = refusal({"server_version": version})

    assert message is not None
    assert f"Kubernetes {version}" in message
    assert "upgrade it to that or a newer one" in message
    assert "1.36" in message


@pytest.mark.parametrize("version", ["1.36.0", "1.100.1", None], ids=["the floor", "newer", "none that is said"])
def test_a_cluster_that_is_new_enough_is_accepted(version: str | None) -> None:
    assert refusal({"server_version": version}) is None


@pytest.mark.parametrize("name", ["control_plane_replicas", "control_plane_wait_timeout"])
@pytest.mark.parametrize("number", [0, "0", -1])
def test_a_number_that_would_break_the_control_plane_is_refused(name: str, number: Any) -> None:
    message = refusal(**{name: number})
    assert message is not None
    assert f"{name} ({number})" in message
    assert "at least 1" in message


def test_a_cluster_is_refused_when_all_its_runtimes_are_too_old() -> None:
    old = ["a (containerd 1.7.27)", "b (containerd 2.0.5)"]
    message = refusal({"nodes_without_image_volumes": old})

    assert message is not None
    assert "a (containerd 1.7.27), b (containerd 2.0.5)" in message
    assert "Upgrade them to containerd 2.1" in message
    assert refusal({"nodes_without_image_volumes": old[:1]}) is None


def test_a_cluster_that_is_too_old_can_be_cleaned() -> None:
    assert refusal({"server_version": "1.30.0"}, control_plane_state="absent") is None


DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"control_plane_image_digests": {"control-plane": "0.1.0"}}, id="a tag"),
        pytest.param({"control_plane_image_digests": {"control-plane": DIGEST[:-1]}}, id="a digest cut short"),
        pytest.param({"control_plane_image_digests": {"virt-api": DIGEST}}, id="a component, not an image"),
        pytest.param({"control_plane_image_revisions": {"virt-api": "1"}}, id="the revision of no image"),
    ],
)
def test_malformed_image_names_and_digests_are_refused(options: dict[str, Any]) -> None:
    message = refusal(**options)

    assert message is not None
    assert "control-plane, virt-launcher, test-guest" in message


def test_digests_and_revisions_of_images_are_accepted() -> None:
    pins = {"control_plane_image_digests": {"virt-launcher": DIGEST}}

    assert refusal(**pins, control_plane_image_revisions={"control-plane": "any text"}) is None


@pytest.mark.parametrize(("wanted", "there"), [(True, True), (False, False), ("false", False)])
def test_a_monitor_is_accepted_where_its_kind_is_installed_or_no_monitor_is_wanted(wanted: Any, there: bool) -> None:
    assert refusal({"has_pod_monitors": there}, control_plane_service_monitor=wanted) is None


def test_a_monitor_is_refused_where_its_kind_is_not_installed() -> None:
    message = refusal(control_plane_service_monitor="true")

    assert message is not None
    assert "monitoring.coreos.com" in message
    assert "Install the Prometheus operator first" in message


def test_removal_checks_each_object_and_has_no_refusal() -> None:
    assert refusal({"namespace_owner": "other"}, control_plane_state="absent") is None


PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def of_webhooks(authority: Any, names: Any, **others: Any) -> str | None:
    options = {"control_plane_webhook_client_ca": authority, "control_plane_webhook_client_names": names}
    return refusal(**options, **others)


@pytest.mark.parametrize(
    ("authority", "names"),
    [
        pytest.param(PEM, "front-proxy-client", id="a name, not a list"),
        pytest.param("", "front-proxy-client", id="a name alone"),
        pytest.param(PEM, {"front-proxy-client": True}, id="a mapping"),
        pytest.param(PEM, [1], id="a number"),
        pytest.param(PEM, [""], id="an empty name"),
        pytest.param(PEM, [], id="no name"),
        pytest.param("", ["front-proxy-client"], id="no authority"),
        pytest.param("/etc/kubernetes/pki/front-proxy-ca.crt", ["front-proxy-client"], id="a path"),
    ],
)
def test_settings_that_would_end_virt_api_are_refused_with_the_right_spelling(authority: Any, names: Any) -> None:
    message = of_webhooks(authority, names)

    assert message is not None
    assert "lookup('ansible.builtin.file', 'ca.crt')" in message
    assert '["front-proxy-client"]' in message
    assert "Set both or neither" in message


def test_both_or_neither_proof_of_api_servers_are_accepted() -> None:
    assert of_webhooks(PEM, ["front-proxy-client", "other"]) is None
    assert of_webhooks("", []) is None


def test_options_of_an_installation_do_not_block_a_removal() -> None:
    assert of_webhooks(PEM, [], control_plane_state="absent") is None


NETWORKS = {"k8s.v1.cni.cncf.io/networks": "kubevirt/moves@migration0"}


def test_contradicting_networks_of_virt_handler_are_refused() -> None:
    message = refusal(control_plane_migration_network="kubevirt/moves", control_plane_handler_annotations=NETWORKS)

    assert message is not None
    assert "unset one" in message
    assert "kubevirt/moves@migration0,other" in message


@pytest.mark.parametrize(
    "options",
    [
        {"control_plane_migration_network": "moves", "control_plane_handler_annotations": {"other": "annotation"}},
        {"control_plane_handler_annotations": NETWORKS},
    ],
    ids=["option", "annotation"],
)
def test_consistent_networks_of_virt_handler_are_accepted(options: dict[str, Any]) -> None:
    assert refusal(**options) is None

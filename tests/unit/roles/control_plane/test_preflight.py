# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusals of role control_plane before any write, with their messages."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.plugins.loader import lookup_loader
from ansible_collections.virtops.kubevirt.tests.unit.tasks import ROLES, Host, load, role_variables

ROLE = ROLES / "control_plane"
TASKS = load(ROLE / "tasks/preflight.yml")
VARIABLES = role_variables("control_plane")
EMPTY: dict[str, Any] = {
    "owner": "none",
    "evidence": "",
    "version": None,
    "namespace": None,
    "namespace_owner": "none",
    "namespace_terminating": False,
    "server_version": "1.36.3",
    "api_server_has_image_volumes": True,
    "nodes": ["a", "b"],
    "nodes_without_image_volumes": [],
    "has_pod_monitors": False,
    "workloads": [],
    "definitions_version": None,
    "check_mode": False,
}
NEWER = {"owner": "ours", "version": "0.2.0"}
TERMINATING = {"namespace_owner": "ours", "namespace_terminating": True}
OLD_RUNTIMES = ["a (containerd 1.7.27)", "b (containerd 2.0.5)"]
DIGEST = "sha256:" + "0" * 64
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
NETWORKS = {"k8s.v1.cni.cncf.io/networks": "kubevirt/moves@migration0"}


def checked(found: dict[str, Any], options: dict[str, Any]) -> Host:
    """Return the host of a role with this cluster and options without their prefix."""
    variables = VARIABLES | {f"control_plane_{name}": value for name, value in options.items()}
    return Host(ROLE, variables, kubevirt_control_plane_info=lambda _arguments: EMPTY | found)


def refusal(found: dict[str, Any], options: dict[str, Any]) -> str:
    """Return the message; "" when nothing is refused."""
    return checked(found, options).refusal(TASKS)


@pytest.mark.parametrize(
    ("found", "options"),
    [
        pytest.param({}, {}, id="an empty cluster"),
        pytest.param({"namespace_owner": "ours"}, {}, id="our namespace, also one that was handed over"),
        pytest.param(TERMINATING, {"state": "absent"}, id="a removal while the namespace terminates"),
        pytest.param(NEWER, {"allow_downgrade": True}, id="a downgrade with the option"),
        pytest.param(NEWER, {"allow_downgrade": "true"}, id="a downgrade with the option as a text"),
        pytest.param({"server_version": "1.33.0"}, {}, id="the oldest Kubernetes"),
        pytest.param({"server_version": "1.100.1"}, {}, id="a newer Kubernetes"),
        pytest.param({"server_version": None}, {}, id="an unknown Kubernetes"),
        pytest.param({"server_version": "1.30.0"}, {"state": "absent"}, id="a removal from an old cluster"),
        pytest.param({"nodes_without_image_volumes": OLD_RUNTIMES[:1]}, {}, id="one runtime is too old"),
        pytest.param(
            {},
            {"image_digests": {"virt-launcher": DIGEST}, "image_revisions": {"control-plane": "any text"}},
            id="digests and revisions of images",
        ),
        pytest.param({"has_pod_monitors": True}, {"service_monitor": True}, id="a monitor, and its kind"),
        pytest.param({}, {"service_monitor": "false"}, id="no monitor is wanted"),
        pytest.param({"namespace_owner": "other"}, {"state": "absent"}, id="a removal checks each object"),
        pytest.param(
            {}, {"webhook_client_ca": PEM, "webhook_client_names": ["front-proxy-client", "other"]}, id="CA and names"
        ),
        pytest.param(
            {},
            {"webhook_client_ca": PEM, "webhook_client_names": [], "state": "absent"},
            id="a removal ignores options of an installation",
        ),
        pytest.param(
            {}, {"migration_network": "moves", "handler_annotations": {"other": "annotation"}}, id="a network"
        ),
        pytest.param({}, {"handler_annotations": NETWORKS}, id="a network by the annotation"),
    ],
)
def test_valid_options_and_clusters_are_accepted(found: dict[str, Any], options: dict[str, Any]) -> None:
    assert refusal(found, options) == ""


def test_the_objects_are_rendered_only_for_the_note_about_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendering takes seconds."""
    rendered: list[str] = []
    lookup = type(lookup_loader.get("ansible.builtin.template"))
    monkeypatch.setattr(lookup, "run", lambda _self, terms, *_unused, **_options: rendered.extend(terms) or terms)

    assert refusal({}, {}) == ""
    assert rendered == []


@pytest.mark.parametrize(
    ("found", "options", "parts"),
    [
        pytest.param(
            {"namespace_owner": "other"},
            {"namespace": "production"},
            [
                "Namespace production exists",
                "another name",
                "kubectl label --overwrite namespace production app.kubernetes.io/managed-by=virtops.kubevirt",
                "privileged",
                "removed",
            ],
            id="a namespace of others",
        ),
        pytest.param(
            TERMINATING,
            {},
            ["Namespace kubevirt is being deleted", "again when it is gone"],
            id="a namespace that goes",
        ),
        pytest.param(
            {"namespace": "virt"}, {}, ["Set control_plane_namespace to virt."], id="another namespace in use"
        ),
        pytest.param(
            {"owner": "other", "evidence": "managed by virt-operator"},
            {},
            ["(managed by virt-operator)"],
            id="upstream",
        ),
        *(
            pytest.param(
                NEWER,
                {"allow_downgrade": value},
                ["Version 0.2.0", "newer than 0.1.0 of this role", "set control_plane_allow_downgrade to true"],
                id=f"a downgrade, allowed: {value}",
            )
            for value in (False, "false", "no")
        ),
        *(
            pytest.param(
                {"server_version": version}, {}, [f"Kubernetes {version}", "upgrade it to that", "1.33"], id=version
            )
            for version in ("1.32.9", "1.9.0")
        ),
        pytest.param(
            {"server_version": "1.34.4", "api_server_has_image_volumes": False},
            {},
            ["Kubernetes 1.34.4", "kube-apiserver and each kubelet", "ImageVolume=true", "1.35"],
            id="the gate is off at the API server",
        ),
        *(
            pytest.param(
                {}, {name: number}, [f"control_plane_{name} ({number})", "at least 1"], id=f"{name} {number!r}"
            )
            for name in ("replicas", "wait_timeout")
            for number in (0, "0", -1)
        ),
        pytest.param(
            {"nodes_without_image_volumes": OLD_RUNTIMES},
            {},
            [", ".join(OLD_RUNTIMES), "containerd 2.1"],
            id="all runtimes are too old",
        ),
        *(
            pytest.param({}, {name: value}, ["control-plane, virt-launcher, test-guest"], id=case)
            for case, name, value in (
                ("a tag", "image_digests", {"control-plane": "0.1.0"}),
                ("a digest cut short", "image_digests", {"control-plane": DIGEST[:-1]}),
                ("a component, not an image", "image_digests", {"virt-api": DIGEST}),
                ("the revision of no image", "image_revisions", {"virt-api": "1"}),
            )
        ),
        pytest.param(
            {}, {"service_monitor": "true"}, ["monitoring.coreos.com", "Prometheus operator first"], id="no monitors"
        ),
        *(
            pytest.param(
                {},
                {"webhook_client_ca": authority, "webhook_client_names": names},
                ["lookup('ansible.builtin.file', 'ca.crt')", '["front-proxy-client"]', "Set both or neither"],
                id=case,
            )
            for case, authority, names in (
                ("a name, not a list", PEM, "front-proxy-client"),
                ("a name alone", "", "front-proxy-client"),
                ("a mapping", PEM, {"front-proxy-client": True}),
                ("a number", PEM, [1]),
                ("an empty name", PEM, [""]),
                ("no name", PEM, []),
                ("no authority", "", ["front-proxy-client"]),
                ("a path", "/etc/kubernetes/pki/front-proxy-ca.crt", ["front-proxy-client"]),
            )
        ),
        pytest.param(
            {},
            {"migration_network": "kubevirt/moves", "handler_annotations": NETWORKS},
            ["unset one", "kubevirt/moves@migration0,other"],
            id="a network that is set twice",
        ),
    ],
)
def test_a_refusal_names_the_problem_and_the_remedy(
    found: dict[str, Any], options: dict[str, Any], parts: list[str]
) -> None:
    message = refusal(found, options)

    assert [part for part in parts if part not in message] == [], message


def test_all_refusals_are_reported_together() -> None:
    message = refusal({"server_version": "1.30.0", "namespace": "virt"}, {})

    assert "Set control_plane_namespace to virt." in message
    assert "upgrade it to that" in message


@pytest.mark.parametrize(
    ("found", "note"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"nodes_without_image_volumes": OLD_RUNTIMES[:1]}, "can run on a (containerd 1.7", id="a runtime"),
        pytest.param({"definitions_version": "99.0.0"}, "definitions stay at version 99.0.0", id="newer definitions"),
        pytest.param({"check_mode": True}, "namespace kubevirt, and is not validated", id="a namespace to come"),
    ],
)
def test_what_an_installation_leaves_out_is_noted(found: dict[str, Any], note: str | None) -> None:
    host = checked(found, {})
    host.run(TASKS)

    assert len(host.messages) == (note is not None)
    assert (note or "") in "".join(host.messages)

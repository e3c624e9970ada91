# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets are found everywhere, and shown nowhere."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import redact
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.argspec import auth_argument_spec

KNOWN = auth_argument_spec()
VM = {
    "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{canary}", "note": "seen"}},
    "spec": {"volumes": [{"name": "c", "cloudInitNoCloud": {"userData": "canary", "secretRef": {"name": "s"}}}]},
}


def test_cloud_init_and_kubectls_last_applied_are_hidden_and_references_are_shown() -> None:
    shown = redact.redacted(VM)
    assert "canary" not in str(shown)
    assert shown["spec"]["volumes"][0]["cloudInitNoCloud"]["secretRef"] == {"name": "s"}
    assert shown["metadata"]["annotations"]["note"] == "seen"


def test_a_diff_shows_that_a_secret_changed_without_its_value() -> None:
    new = {"cloudInitNoCloud": {"userData": "new canary", "networkData": "same"}}
    shown = redact.redacted(new, unlike={"cloudInitNoCloud": {"userData": "old canary", "networkData": "same"}})
    assert shown["cloudInitNoCloud"] == {"userData": redact.CHANGED_MARK, "networkData": redact.MARK}


@pytest.mark.parametrize("name", ["userdata", "user-data", "UserData", "userDataBASE64", "Password", "client_secret"])
def test_the_value_of_a_misspelt_field_is_hidden(name: str) -> None:
    """The field is refused, and the result shows the refused object."""
    assert set(redact.secrets_in({"cloudInitNoCloud": {name: "canary"}})) == {"canary"}
    assert "canary" not in str(redact.redacted({"cloudInitNoCloud": {name: "canary"}}))


@pytest.mark.parametrize("name", ["proxy", "proxy-url", "host", "server"])
def test_a_password_in_an_address_is_a_secret(name: str) -> None:
    assert set(redact.secrets_in({name: "https://user:canary@api.example.org"})) == {"canary"}


URL = "https://joe:canary@images.example.org/a.img"


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"spec": {"source": {"http": {"url": URL}}}}, id="where a disk comes from"),
        pytest.param({"annotations": {"note": f"from {URL}, twice: {URL}"}}, id="inside a text"),
        pytest.param({"args": ["a", URL]}, id="in a list"),
        pytest.param({"url": "s3://:canary@h"}, id="no user"),
        pytest.param({"url": "ftp://joe:canary@@h"}, id="an @ in it"),
        pytest.param({"annotations": {"kubevirt.io/ignitiondata": '{"passwd": "canary"}'}}, id="ignition"),
    ],
)
def test_a_password_in_any_text_is_hidden_and_the_rest_is_shown(obj: dict[str, Any]) -> None:
    assert any("canary" in item for item in redact.secrets_in_arguments({"spec": obj}, {"spec": {"type": "dict"}}))
    assert "canary" not in str(redact.redacted(obj))
    assert "canary" in str(obj), "the object itself stays as it is"


def test_only_the_password_of_an_address_is_hidden() -> None:
    assert redact.redacted({"url": URL})["url"] == f"https://joe:{redact.MARK}@images.example.org/a.img"
    changed = redact.redacted({"url": URL}, unlike={"url": URL.replace("canary", "older")})["url"]
    assert changed == f"https://joe:{redact.CHANGED_MARK}@images.example.org/a.img"


@pytest.mark.parametrize(
    "text",
    ["docker://registry:5000/a@sha256:0123abcd", "http://h:80/?mail=a@b", "https://h/a:b@c", "joe@h", "a://joe@h:1234"],
)
def test_an_address_without_a_password_is_shown(text: str) -> None:
    assert redact.redacted({"url": text}) == {"url": text}
    assert set(redact.secrets_in({"url": text})) == set()


@pytest.mark.parametrize("env", [{"KEY": "canary"}, ["KEY=canary"], "KEY=canary", [{"name": "K", "value": "canary"}]])
def test_the_environment_of_a_credential_plugin_is_secret_however_it_is_written(env: Any) -> None:
    secrets = set(redact.secrets_in({"user": {"exec": {"command": "seen", "env": env}}}))
    assert any("canary" in item for item in secrets)
    assert "seen" not in secrets


@pytest.mark.parametrize(
    "args",
    [
        ["--client-secret=canary"],
        ["get-token", "--client-secret", "canary", "--v=seen"],
        "get-token --client-secret canary",
    ],
)
def test_an_argument_of_a_credential_plugin_with_a_secret_name_is_secret(args: object) -> None:
    secrets = set(redact.secrets_in({"user": {"exec": {"command": "seen", "args": args}}}))

    assert secrets == {"canary"}


@pytest.mark.parametrize("args", [None, "get-token", ["get-token", "seen", "--token-url=seen"], ["--token"], [7]])
def test_other_arguments_of_a_credential_plugin_are_shown(args: object) -> None:
    assert set(redact.secrets_in({"user": {"exec": {"args": args}}})) == set()


def test_base64_is_a_secret_in_both_forms() -> None:
    secrets = set(redact.secrets_in({"userDataBase64": base64.b64encode(b"canary").decode()}))
    assert "canary" in secrets


def test_arguments_are_searched_before_they_are_validated() -> None:
    secrets = redact.secrets_in_arguments(
        {
            "user_date": {"deep": ["misspelt canary"]},
            "definition": '{"userData": "text canary"',
            "kubeconfig": {"users": [{"user": {"token": "token canary"}}]},
            "vms": [{"cloud_init": {"user_data": "listed canary"}}],
            "host": "https://shown.example.org",
            "_ansible_version": "2.19",
        },
        {**KNOWN, "definition": {"type": "dict"}, "vms": {"type": "list", "elements": "dict"}},
    )
    assert {"misspelt canary", '{"userData": "text canary"', "token canary", "listed canary"} <= secrets
    assert not secrets & {"https://shown.example.org", "2.19"}


def test_a_path_of_a_kubeconfig_is_no_secret_and_an_inline_one_is() -> None:
    assert redact.secrets_in_arguments({"kubeconfig": "/home/u/.kube/config"}, KNOWN) == set()
    assert redact.secrets_in_arguments({"kubeconfig": "{users: canary}"}, KNOWN) == {"{users: canary}"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("users:\n- name: u\n", id="YAML"),
        pytest.param("current-context: canary", id="one line of YAML"),
    ],
)
def test_a_kubeconfig_given_as_yaml_is_a_secret(text: str) -> None:
    assert redact.secrets_in_arguments({"kubeconfig": text}, KNOWN) == {text}


def test_names_with_values_are_secret_only_in_a_credential_plugin() -> None:
    assert set(redact.secrets_in({"spec": {"env": [{"name": "region", "value": "europe"}]}})) == set()
    plugin = {"exec": {"command": "login", "env": [{"name": "KEY", "value": "canary"}]}}
    assert set(redact.secrets_in({"users": [{"user": plugin}]})) == {"canary"}


SECRET = {
    "kind": "Secret",
    "metadata": {"name": "seen", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{canary}"}},
    "stringData": {"key": "canary"},
    "data": {"other": "Y2FuYXJ5"},
}


def test_a_secret_shows_its_metadata_and_the_names_of_its_keys() -> None:
    assert {"canary", "Y2FuYXJ5"} <= set(redact.secrets_in({"definitions": [SECRET]}))
    shown = redact.redacted(SECRET)
    assert "canary" not in str(shown)
    assert "Y2FuYXJ5" not in str(shown)
    assert (shown["metadata"]["name"], list(shown["stringData"])) == ("seen", ["key"])
    assert redact.redacted({"kind": "ConfigMap", "data": {"key": "seen"}})["data"] == {"key": "seen"}


def test_kubectls_last_applied_is_searched_for_secrets() -> None:
    copy = json.dumps(SECRET)
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": copy}
    assert "canary" in set(redact.secrets_in({"kind": "Secret", "metadata": {"annotations": annotations}}))


def test_very_short_texts_are_not_masked_everywhere() -> None:
    assert set(redact.secrets_in({"password": "abc"})) == set()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"proxy": "http://jane:canary@proxy:3128"}, {"canary"}),
        ({"proxy": "jane:can%61ry@proxy"}, {"can%61ry", "canary"}),
        ({"kubeconfig": {"clusters": [{"cluster": {"proxy-url": "http://jane:canary@proxy"}}]}}, {"canary"}),
        ({"proxy": "http://proxy:3128", "no_proxy": "a:b@c"}, set()),
    ],
)
def test_the_password_in_the_address_of_a_proxy_is_a_secret(arguments: dict[str, Any], expected: set[str]) -> None:
    assert redact.secrets_in_arguments(arguments, KNOWN) == expected

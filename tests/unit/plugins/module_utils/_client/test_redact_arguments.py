# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Malformed arguments: a module refuses them, and the invocation that it shows has no secret."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.parameters import remove_values
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import redact
from ansible_collections.virtops.kubevirt.plugins.module_utils._service import ensure
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request.argspec import vm_spec

USER_DATA = "#cloud-config\npassword: canary"


def shown(arguments: dict[str, Any]) -> str:
    """Return the invocation that Ansible shows for a task."""
    return str(remove_values(arguments, redact.secrets_in_arguments(arguments, vm_spec())))


OF_A_MACHINE: dict[str, dict[str, Any]] = {
    "cloud-init is a text": {"cloud_init": USER_DATA},
    "cloud-init is a list of texts": {"cloud_init": [USER_DATA]},
    "cloud-init is a list of lists": {"cloud_init": [[USER_DATA]]},
    "cloud-init is a mapping in a list": {"cloud_init": [{"user-dat": USER_DATA}]},
    "cloud-init with a misspelt name": {"cloud_init": {"usr_dat": USER_DATA}},
    "cloud-init in the place of a reference": {"cloud_init": {"user_data_secret": [USER_DATA]}},
    "a definition is a text": {"definition": "userData: canary"},
    "a definition is a list": {"definition": ["userData: canary"]},
    "a definition by its other name": {"resource_definition": "userData: canary"},
    "a spec is a list": {"spec": ["userData: canary"]},
    "volumes are a text": {"volumes": "userData: canary"},
    "volumes are texts": {"volumes": ["userData: canary"]},
    "templates of disks are texts": {"data_volume_templates": ["extraHeaders: canary"]},
    "annotations are a list": {"annotations": ["kubevirt.io/ignitiondata: canary"]},
    "annotations of a definition": {"definition": {"metadata": {"annotations": ["kubevirt.io/ignitiondata: canary"]}}},
    "volumes of a spec": {"spec": {"volumes": ["userData: canary"]}},
    "a volume of a spec": {"spec": {"volumes": [{"name": "c", "cloudInitNoCloud": "userData: canary"}]}},
    "another volume of a spec": {"spec": {"volumes": [{"name": "c", "cloudInitConfigDrive": ["userData: canary"]}]}},
    "a text that has a list": {"memory": ["canary"]},
    "a text that has a mapping": {"image": {"user": "canary"}},
    "a mapping written as a text": {"annotations": "kubevirt.io/ignitiondata=canary"},
}
"""Options of kubevirt_vm for one machine, at the top level and in `vms`."""


def test_a_number_as_a_secret_is_hidden() -> None:
    """YAML reads a password of digits as a number, and the module refuses it because it must be a text."""
    users = [{"name": "u", "user": {"token": 31415926, "password": 27.1828}}]
    result = shown({"kubeconfig": {"users": users}, "api_kye": 16180339})
    assert not [item for item in ("31415926", "27.1828", "16180339") if item in result]


@pytest.mark.parametrize(
    ("spec", "arguments"),
    [
        pytest.param(ensure.argument_spec(), {"ports": [{"port": 8080, "target_port": 8443}]}, id="ports"),
        pytest.param(ensure.argument_spec(), {"wait_timeout": 1800, "external_ips": [5050]}, id="Service"),
        pytest.param(vm_spec(), {"run_timeout": 3600, "cpu": {"cores": 1024}, "name": 2024}, id="machine"),
        pytest.param(vm_spec(), {"vms": [{"run_timeout": 3600, "cpu": {"cores": 1024}, "name": 2024}]}, id="machines"),
        pytest.param(vm_spec(), {"kubeconfig": {"users": [{"name": 2024}]}}, id="kubeconfig"),
    ],
)
def test_the_number_of_a_numeric_option_is_shown(spec: dict[str, Any], arguments: dict[str, Any]) -> None:
    """It was once masked everywhere in the result: in the port of a Service, at the end of an address."""
    assert redact.secrets_in_arguments(arguments, spec) == set()


@pytest.mark.parametrize("options", OF_A_MACHINE.values(), ids=OF_A_MACHINE.keys())
def test_a_secret_of_the_wrong_type_is_hidden(options: dict[str, Any]) -> None:
    assert "canary" not in shown({"name": "a", **options})
    assert "canary" not in shown({"vms": [{"name": "a", **options}]})


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"vms": "cloud_init: canary"}, id="machines are a text"),
        pytest.param({"vms": ["cloud_init: canary"]}, id="machines are texts"),
        pytest.param({"vms": [[{"cloud_init": {"x": "canary"}}]]}, id="machines are lists"),
        pytest.param({"vms": {"cloud_init": "canary"}}, id="one machine, that is no list"),
        pytest.param({"kubeconfig": ["token: canary"]}, id="a kubeconfig is a list"),
        pytest.param({"kubeconfig": {"users": ["token: canary"]}}, id="users are texts"),
        pytest.param({"kubeconfig": {"users": [{"name": "u", "user": "token: canary"}]}}, id="a user is a text"),
        pytest.param({"kubeconfig": {"users": {"u": "token: canary"}}}, id="users by name"),
        pytest.param({"proxy_headers": "basic_auth: joe:canary"}, id="headers are a text"),
        pytest.param({"impersonate_groups": [{"token": ["canary"]}]}, id="a list of texts has a mapping"),
    ],
)
def test_a_secret_of_the_wrong_type_in_an_option_of_the_task_is_hidden(arguments: dict[str, Any]) -> None:
    assert "canary" not in shown(arguments)


@pytest.mark.parametrize("text", ['{"userData": "canary"}', "userData=canary"])
def test_secrets_in_a_text_that_is_parsed_as_a_mapping_are_hidden(text: str) -> None:
    assert "canary" in redact.secrets_in_arguments({"definition": text}, vm_spec())


@pytest.mark.parametrize(
    "entry",
    [
        {"user": {"tokn": "canary"}},
        {"user": {"passwrd": "canary"}},
        {"user": {"tokn": ["canary"]}},
        {"user": {"username": {"password_": "canary"}}},
        {"user": {"client-key-dta": "canary"}},
        {"user": {"exec": {"command": "aws", "environment": [{"name": "TOKEN", "value": "canary"}]}}},
        {"user": {"exec": "TOKEN=canary aws"}},
        {"user": {"auth-provider": {"name": "oidc", "config": {"id-tokn": "canary"}}}},
        {"user": {"auth-provider": {"name": "oidc", "id-tokn": "canary"}}},
        {"usr": {"tokn": "canary"}},
        {"tokn": "canary"},
    ],
    ids=str,
)
def test_values_at_unknown_names_are_hidden(entry: dict[str, Any]) -> None:
    assert "canary" not in shown({"kubeconfig": {"users": [{"name": "u", **entry}]}})


def test_values_that_are_no_secrets_are_shown() -> None:
    user = {
        "as": "seen",
        "as-groups": ["seen"],
        "as-uid": "seen",
        "auth-provider": {"name": "seen", "config": {"client-id": "seen", "idp-issuer-url": "seen"}},
        "client-certificate": "seen",
        "client-certificate-data": "seen",
        "client-key": "seen",
        "exec": {"apiVersion": "seen", "args": ["seen"], "command": "seen", "installHint": "seen"},
        "tokenFile": "seen",
        "username": "seen",
    }
    exec_ = {"env": [{"name": "seen", "value": "hidden"}], "interactiveMode": "seen", "provideClusterInfo": True}
    users = [{"name": "seen", "user": {**user, "exec": {**user["exec"], **exec_}}}, {"name": "seen", "user": None}]
    assert redact.secrets_in_arguments({"kubeconfig": {"users": users}}, vm_spec()) == {"hidden"}


def test_values_of_the_right_type_are_shown() -> None:
    arguments = {
        "definition": {"kind": "VirtualMachine", "metadata": {"labels": {"app": "seen"}}},
        "impersonate_groups": ["seen"],
        "kubeconfig": {"contexts": [{"name": "seen", "context": {"user": "seen"}}], "users": [{"name": "seen"}]},
        "labels": {"app": "seen"},
        "memory": "seen",
        "spec": {
            "accessCredentials": [{"userPassword": {"propagationMethod": {"qemuGuestAgent": {"users": ["seen"]}}}}]
        },
        "vms": [{"name": "seen", "volumes": [{"name": "seen", "containerDisk": {"image": "seen"}}]}],
    }
    assert redact.secrets_in_arguments(arguments, vm_spec()) == set()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules as Ansible runs them: a process, arguments on stdin, one JSON result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.doc_fragments import machine, read
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.argspec import auth_argument_spec
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.frame import documented
from ansible_collections.virtops.kubevirt.plugins.module_utils._console import console, screenshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import argspec as migration_argspec
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward import task as port_forward
from ansible_collections.virtops.kubevirt.plugins.module_utils._service import ensure
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.read import info_argspec
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import argspec, instance_argspec
from ansible_collections.virtops.kubevirt.plugins.modules import (
    kubevirt_console,
    kubevirt_migration,
    kubevirt_migration_info,
    kubevirt_pool,
    kubevirt_pool_info,
    kubevirt_port_forward,
    kubevirt_replicaset,
    kubevirt_replicaset_info,
    kubevirt_screenshot,
    kubevirt_service,
    kubevirt_vm,
    kubevirt_vm_info,
    kubevirt_vmi,
    kubevirt_vmi_info,
)
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving

MODULES = {
    "kubevirt_vm": (kubevirt_vm, argspec.vm_spec()),
    "kubevirt_vmi": (kubevirt_vmi, instance_argspec.vmi_spec()),
    "kubevirt_replicaset": (kubevirt_replicaset, instance_argspec.replicaset_spec()),
    "kubevirt_pool": (kubevirt_pool, instance_argspec.pool_spec()),
    "kubevirt_pool_info": (kubevirt_pool_info, info_argspec.pool_info_spec()),
    "kubevirt_service": (kubevirt_service, ensure.argument_spec()),
    "kubevirt_console": (kubevirt_console, console.argument_spec()),
    "kubevirt_port_forward": (kubevirt_port_forward, port_forward.argument_spec()),
    "kubevirt_screenshot": (kubevirt_screenshot, {**screenshot.argument_spec(), **FILE_COMMON_ARGUMENTS}),
    "kubevirt_migration": (kubevirt_migration, migration_argspec.migration_spec()),
    "kubevirt_migration_info": (kubevirt_migration_info, migration_argspec.migration_info_spec()),
    "kubevirt_replicaset_info": (kubevirt_replicaset_info, info_argspec.info_spec()),
    "kubevirt_vm_info": (kubevirt_vm_info, {**info_argspec.info_spec(), "running": {"type": "bool"}}),
    "kubevirt_vmi_info": (kubevirt_vmi_info, info_argspec.vmi_info_spec()),
}
ENTRIES = {"kubevirt_vm": "vms", "kubevirt_vmi": "vmis", "kubevirt_migration": "vms"}
"""The options that take several objects."""
EXAMPLES = [
    pytest.param(name, task, id=f"{name}: {task['name']}")
    for name, (module, _spec) in MODULES.items()
    for task in yaml.safe_load(module.EXAMPLES)
    if f"virtops.kubevirt.{name}" in task
]
ROOT = Path(__file__).resolve().parents[4]
CONFTEST = ROOT / "tests" / "unit" / "conftest.py"
START = (
    "import runpy, sys; sys.path.insert(0, {above!r}); runpy.run_path({conftest!r});"
    "import ansible.module_utils.basic as basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
    "basic._ANSIBLE_PROFILE = 'legacy';"
    "runpy.run_module('ansible_collections.virtops.kubevirt.plugins.modules.{name}', run_name='__main__')"
)


def run(module: str, /, *, environment: dict[str, str] | None = None, **arguments: Any) -> tuple[dict[str, Any], str]:
    """Run a module; return its result and all its output."""
    code = START.format(above=str(ROOT.parent.parent.parent), conftest=str(CONFTEST), name=module)
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    return json.loads(done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize(("name", "task"), EXAMPLES)
def test_every_example_is_accepted(name: str, task: dict[str, Any]) -> None:
    arguments = task[f"virtops.kubevirt.{name}"]
    result = ArgumentSpecValidator(MODULES[name][1]).validate(arguments)
    assert result.error_messages == []


def options(documentation: dict[str, Any], key: str = "options") -> dict[str, Any]:
    """Return name -> (type, choices, default, aliases, elements, suboptions) of documented options."""
    return {
        name: (
            option["type"], option.get("choices"), option.get("default"), option.get("aliases", []),
            option.get("elements"), options(option, "suboptions"),
        )
        for name, option in (documentation.get(key) or {}).items()
    }  # fmt: skip


def specified(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (
            option["type"], option.get("choices"), option.get("default"), option.get("aliases", []),
            option.get("elements"), specified(option.get("options", {})),
        )
        for name, option in spec.items()
    }  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_documentation_and_specification_are_equal(name: str) -> None:
    module, whole_spec = MODULES[name]
    spec = documented(whole_spec, ENTRIES.get(name, ""))
    documentation = yaml.safe_load(module.DOCUMENTATION)
    own = options(documentation)
    extended = documentation["extends_documentation_fragment"]
    for fragment_name, fragment in (("machine", machine), ("read", read)):
        if f"virtops.kubevirt.{fragment_name}" in extended:
            own = {**options(yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)), **own}
    assert own == {key: value for key, value in specified(spec).items() if key in own}
    assert spec.keys() - own.keys() <= {*auth_argument_spec(), *argspec.wait_spec(), *FILE_COMMON_ARGUMENTS}


@pytest.mark.parametrize(("name", "option"), ENTRIES.items())
def test_the_documentation_of_several_objects_says_which_options_an_entry_takes(name: str, option: str) -> None:
    """The options of one object are documented once."""
    module, spec = MODULES[name]
    text = " ".join(yaml.safe_load(module.DOCUMENTATION)["options"][option]["description"])
    entry = spec[option]["options"]
    of_the_task = spec.keys() - entry.keys() - auth_argument_spec().keys() - {option}
    if "same options" in text:
        unnamed = {other for other in of_the_task if not other.startswith("wait_") and f"O({other})" not in text}
    else:
        unnamed = {other for other in entry if f"O({other})" not in text}
    assert unnamed == set()


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        pytest.param("kubevirt_vm", {"name": "web", "memroy": "1Gi"}, "vms.memroy", id="unknown"),
        pytest.param("kubevirt_vm", {"name": "web", "cpu": {"coers": 1}}, "vms.cpu.coers", id="unknown suboption"),
        pytest.param("kubevirt_vm", {"name": "web", "state": "up"}, "state must be one of: absent", id="choice"),
        pytest.param("kubevirt_vm", {"name": "web", "cpu": {"cores": "x"}}, "cores", id="type"),
        pytest.param("kubevirt_vm", {"name": "a", "generate_name": "a-"}, "mutually exclusive", id="exclusive"),
        pytest.param("kubevirt_vmi", {"name": "web", "running": True}, "vmis.running", id="of another module"),
        pytest.param("kubevirt_migration", {"name": "web", "wait": True}, "vms.wait", id="an option of the task"),
    ],
)
def test_the_options_of_an_entry_are_checked(name: str, entry: dict[str, Any], message: str) -> None:
    """Although the documentation does not repeat them."""
    result, output = run(name, host="http://127.0.0.1:9", namespace="default", **{ENTRIES[name]: [entry]})
    assert result["failed"] is True, output
    assert message in result["msg"]


def test_a_module_creates_a_vm_and_shows_no_secret() -> None:
    world = World()
    with serving(world) as url:
        result, output = run(
            "kubevirt_vm", host=url, name="web", namespace="default", memory="1Gi",
            cloud_init={"user_data": "canary-value"}, _ansible_diff=True, _ansible_verbosity=4,
        )  # fmt: skip
    assert result.get("changed") is True, output
    assert world.vm("web")["spec"]["template"]["spec"]["volumes"][0]["cloudInitNoCloud"] == {"userData": "canary-value"}
    assert "canary" not in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"user_date": "canary-value"}, "Unsupported parameters", id="misspelt secret"),
        pytest.param({"definition": "{canary-value"}, "definition", id="definition is no mapping"),
        pytest.param({"definition": {"kind": "canary-kind", "spec": {"userData": "canary-value"}}}, "kind", id="kind"),
        pytest.param({"cloud_init": {"user_data": "canary-value", "typ": "x"}}, "typ", id="misspelt suboption"),
        pytest.param({"cloud_init": ["x: canary-value"]}, "cloud_init: must be a mapping, not a list", id="a list"),
        pytest.param(
            {"name": None, "vms": [{"name": "a", "cloud_init": "x: canary-value"}]}, "vms[0].cloud_init", id="of many"
        ),
        pytest.param(
            {"spec": '{"volumes": [{"userData": "canary-value"}]}', "run_strategy": "x"}, "run_strategy", id="JSON"
        ),
        pytest.param(
            {"kubeconfig": "users: [canary-value::x]\n", "host": None}, "users[0] must be a mapping", id="inline YAML"
        ),
        pytest.param({"api_key": "canary-value\nX: y"}, "line breaks", id="line break in the token"),
        pytest.param({"state": "suspended"}, "value of state must be one of", id="unknown state"),
        pytest.param({"vms": []}, "mutually exclusive", id="name and vms"),
        pytest.param({"generate_name": "x"}, "mutually exclusive", id="name and generate_name"),
        pytest.param({"wait_timeout": -1}, "wait_timeout is -1: it must be positive", id="negative time"),
        pytest.param({"hidden_fields": ["metadata..x["]}, "error at column", id="no field path"),
    ],
)
def test_bad_arguments_fail_without_traceback_and_secret(arguments: dict[str, Any], words: str) -> None:
    defaults = {
        "name": "web",
        "namespace": "default",
        "memory": "1Gi",
        "host": "https://127.0.0.1:1",
        "api_key": "token-x",
    }
    result, output = run("kubevirt_vm", **{**defaults, **arguments})
    assert result["failed"] is True
    assert words in result["msg"]
    assert "canary-value" not in output
    assert "Traceback" not in output


def test_a_kubeconfig_from_the_environment_is_not_printed_either() -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "canary::value"}}],
    }
    result, output = run("kubevirt_vm_info", environment={"K8S_AUTH_KUBECONFIG": yaml.safe_dump(config)})
    assert "cannot talk to https://127.0.0.1:1" in result["msg"]
    assert "canary" not in output


def test_the_password_of_a_proxy_from_the_environment_is_not_printed_either() -> None:
    environment = {"K8S_AUTH_PROXY": "http://me:canary-word@127.0.0.1:1"}
    result, output = run("kubevirt_vm_info", host="https://127.0.0.1:1", api_key="t", environment=environment)
    assert "127.0.0.1:1" in result["msg"]
    assert "canary" not in output


def test_an_unreachable_server_is_one_sentence() -> None:
    result, _output = run("kubevirt_vm_info", host="https://127.0.0.1:1", api_key="token-x")
    assert result["msg"] == "cannot talk to https://127.0.0.1:1: Connection refused; check host and kubeconfig"


def test_the_general_proxy_variables_are_ignored() -> None:
    names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    with serving(World()) as url:
        nowhere = dict.fromkeys(names, "http://127.0.0.1:1")
        result, output = run("kubevirt_vm_info", host=url, environment={**nowhere, "NO_PROXY": "", "no_proxy": ""})

    assert result.get("api_found") is True, output

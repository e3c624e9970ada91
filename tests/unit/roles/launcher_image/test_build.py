# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How role launcher_image runs the build: with its options, and without the privileges of the tasks on nodes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.plugins.filter.core import combine, flatten
from jinja2.nativetypes import NativeEnvironment

ROLE = Path(__file__).resolve().parents[4] / "roles/launcher_image"
TASKS = yaml.safe_load((ROLE / "tasks/build.yml").read_text())
COMMANDS = [task for task in TASKS if "ansible.builtin.command" in task]


def value(name: str, **options: str) -> Any:
    """Return one of the role's own variables, from the defaults and the values of a user."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    own = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    environment = NativeEnvironment(autoescape=False)
    environment.filters.update(combine=combine, flatten=flatten, product=product)
    return environment.from_string(own[name]).render({**defaults, "launcher_image_tag": "1", **options})


def test_unset_options_add_no_arguments() -> None:
    assert " ".join(value("__launcher_image_command")) == (
        "python3 -B -m images build --json --prefix localhost/virtops --tag 1 --only control-plane --only virt-launcher"
    )
    assert value("__launcher_image_build_environment") == {"PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("launcher_image_debian_mirror", "--mirror https://mirror.example/x"),
        ("launcher_image_debian_security_mirror", "--security-mirror https://mirror.example/x"),
        ("launcher_image_archives", "--output https://mirror.example/x"),
    ],
)
def test_options_become_arguments(option: str, words: str) -> None:
    assert words in " ".join(value("__launcher_image_command", **{option: "https://mirror.example/x"}))


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "no_proxy"])
def test_proxies_are_in_the_environment_under_the_usual_names(name: str) -> None:
    result = value("__launcher_image_build_environment", **{f"launcher_image_{name}": "proxy.example"})
    assert result == {"PYTHONDONTWRITEBYTECODE": "1", name: "proxy.example"}


@pytest.mark.parametrize("task", COMMANDS, ids=lambda item: item["name"])
def test_code_of_the_collection_never_gets_the_privileges_of_the_node_tasks(task: dict[str, Any]) -> None:
    assert task["become"] == "{{ launcher_image_build_become | bool }}"
    assert task["environment"] == "{{ __launcher_image_build_environment }}"
    assert yaml.safe_load((ROLE / "defaults/main.yml").read_text())["launcher_image_build_become"] is False


def test_check_mode_runs_only_the_plan() -> None:
    plan, build = COMMANDS
    assert plan["ansible.builtin.command"]["argv"].endswith("+ ['--check'] }}")
    assert plan["check_mode"] is False
    assert "check_mode" not in build, "a command is passed over in check mode unless it says otherwise"


def test_no_log_of_a_task_contains_a_password() -> None:
    tasks = yaml.safe_load((ROLE / "tasks/pull.yml").read_text())
    telling = [item for item in tasks if "launcher_image_registry_password" in str(item)]
    assert [item["no_log"] for item in telling] == ["{{ launcher_image_registry_password | length > 0 }}"]
    spec = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert spec["launcher_image_registry_password"]["no_log"] is True

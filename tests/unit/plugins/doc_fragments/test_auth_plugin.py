# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins have the connection options of modules, from the same variables in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.config.manager import ConfigManager
from ansible_collections.virtops.kubevirt.plugins.doc_fragments.auth_plugin import ModuleDocFragment
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.argspec import auth_argument_spec
from ansible_collections.virtops.kubevirt.tests.sanity import plugin_options

OPTIONS = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
FALLBACKS = {name: option["fallback"][1] for name, option in auth_argument_spec().items() if "fallback" in option}


def configured(name: str, config_file: Path | None = None) -> Any:
    """Return what Ansible gives a plugin for an option that the user did not set."""
    config = ConfigManager(str(config_file) if config_file else None)
    config.initialize_plugin_configuration_definitions("inventory", "ours", OPTIONS)
    return config.get_config_value(name, plugin_type="inventory", plugin_name="ours")


def test_the_file_is_generated_from_that_for_modules() -> None:
    made = plugin_options.generated(plugin_options.MODULES.read_text())

    assert plugin_options.PLUGINS.read_text() == made, "run python -m tests.sanity.plugin_options"


def test_plugins_have_the_options_of_modules() -> None:
    spec = auth_argument_spec()

    assert {name: option["type"] for name, option in OPTIONS.items()} == {n: o["type"] for n, o in spec.items()}
    assert {name: option.get("aliases", []) for name, option in OPTIONS.items()} == {
        name: option.get("aliases", []) for name, option in spec.items()
    }


def test_plugins_read_the_variables_of_modules() -> None:
    read = {name: {item["name"] for item in option["env"]} for name, option in OPTIONS.items() if "env" in option}

    assert read == {name: set(variables) for name, variables in FALLBACKS.items()}


@pytest.mark.parametrize("name", [name for name, variables in FALLBACKS.items() if len(variables) > 1])
def test_the_order_of_two_variables_is_that_of_modules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FALLBACKS[name]
    wanted, other = ("false", "true") if OPTIONS[name]["type"] == "bool" else ("/wanted", "/other")
    monkeypatch.setenv(first, wanted)
    monkeypatch.setenv(second, other)

    assert configured(name) in ("/wanted", False)


def test_a_list_is_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_AUTH_IMPERSONATE_GROUPS", "one,two")

    assert configured("impersonate_groups") == ["one", "two"]


def test_a_configuration_file_names_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "ansible.cfg").write_text("[virtops_kubevirt]\nhost = https://cluster.example.org:6443\n")

    assert configured("host", tmp_path / "ansible.cfg") == "https://cluster.example.org:6443"


@pytest.mark.parametrize("name", sorted(plugin_options.SECRET))
def test_no_secret_is_read_from_a_configuration_file(name: str) -> None:
    assert "ini" not in OPTIONS[name]

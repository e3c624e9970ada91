# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where role launcher_image passes its options: to the build (test_build.py), and to the modules on the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.image import image_spec, runtime_spec

ROLE = Path(__file__).resolve().parents[4] / "roles/launcher_image"
IMAGE, INFO = "virtops.kubevirt.kubevirt_node_image", "virtops.kubevirt.kubevirt_node_image_info"
OPTIONS = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
OF_THE_RUNTIME = ("runtime", "ctr", "crictl", "importer", "registry_hosts")
OF_A_PULL = {"pull": "pull", "registry_username": "username", "registry_password": "password"}
OF_THE_BUILD = {
    "names", "prefix", "tag", "archives", "build_host", "build_python", "build_become", "debian_mirror",
    "debian_security_mirror", "http_proxy", "https_proxy", "no_proxy",
}  # fmt: skip
"""The names of images are passed to the tasks on nodes too."""
OF_THE_ROLE = {"state", "registry"}


def tasks(name: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = yaml.safe_load((ROLE / "tasks" / name).read_text())
    return result


@pytest.mark.parametrize("module", [IMAGE, INFO])
def test_every_task_on_a_node_uses_the_selected_runtime(module: str) -> None:
    """The enclosing block sets it once for both modules."""
    (block,) = (item for item in tasks("main.yml") if "block" in item)

    assert block["module_defaults"][module] == {item: f"{{{{ launcher_image_{item} }}}}" for item in OF_THE_RUNTIME}
    assert set(OF_THE_RUNTIME) == set(runtime_spec())
    outside = [item["name"] for item in tasks("main.yml") if "block" not in item]
    assert outside == ["Check the variables"]


@pytest.mark.parametrize("option", OF_A_PULL)
def test_pull_options_reach_the_module(option: str) -> None:
    (pull,) = (task[IMAGE] for task in tasks("pull.yml") if IMAGE in task)

    assert pull[OF_A_PULL[option]].startswith(f"{{{{ launcher_image_{option} ")
    assert OF_A_PULL[option] in image_spec()


def test_every_option_is_passed_on() -> None:
    listed = {*OF_THE_RUNTIME, *OF_A_PULL, *OF_THE_BUILD, *OF_THE_ROLE}

    assert {f"launcher_image_{item}" for item in listed} == set(OPTIONS)


@pytest.mark.parametrize("option", ["pull", "runtime"])
def test_the_choices_are_those_of_the_module(option: str) -> None:
    assert OPTIONS[f"launcher_image_{option}"]["choices"] == image_spec()[option]["choices"]
    assert OPTIONS[f"launcher_image_{option}"]["default"] == image_spec()[option]["default"]

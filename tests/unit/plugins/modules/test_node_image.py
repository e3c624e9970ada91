# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that run on a node, as Ansible runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.doc_fragments.node_runtime import ModuleDocFragment
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.image import image_spec, runtime_spec
from ansible_collections.virtops.kubevirt.plugins.modules import kubevirt_node_image, kubevirt_node_image_info
from ansible_collections.virtops.kubevirt.tests.unit.plugins.modules.test_modules import options, run, specified

MODULES = {
    "kubevirt_node_image": (kubevirt_node_image, image_spec()),
    "kubevirt_node_image_info": (kubevirt_node_image_info, runtime_spec()),
}
CTR = """#!/bin/sh
case "$*" in
  *" list") echo "REF TYPE DIGEST SIZE" ;;
  *) echo "ctr: pulling $*: 401 Unauthorized" >&2; exit 1 ;;
esac
"""


@pytest.mark.parametrize("name", MODULES)
def test_documentation_and_specification_are_equal(name: str) -> None:
    module, spec = MODULES[name]
    written = options(yaml.safe_load(module.DOCUMENTATION)) | options(yaml.safe_load(ModuleDocFragment.DOCUMENTATION))
    required = {key: option.get("required", False) for key, option in spec.items()}

    assert written == specified(spec)
    assert [key for key, is_required in required.items() if is_required] == (["name"] if "name" in spec else [])


@pytest.mark.parametrize("name", MODULES)
def test_every_example_is_accepted(name: str) -> None:
    module, spec = MODULES[name]
    for task in yaml.safe_load(module.EXAMPLES):
        arguments: dict[str, Any] | None = task.get(f"virtops.kubevirt.{name}", {})
        assert ArgumentSpecValidator(spec).validate(arguments or {}).error_messages == [], task["name"]


def test_the_refusal_of_a_registry_is_shown_without_the_password(tmp_path: Path) -> None:
    ctr = tmp_path / "ctr"
    ctr.write_text(CTR)
    ctr.chmod(0o755)
    answer, printed = run(
        "kubevirt_node_image",
        name="registry.example/virtops/virt-launcher:1",
        runtime="containerd",
        ctr=str(ctr),
        username="nodes",
        password="canary-word",
    )
    assert answer["failed"] is True
    assert "401 Unauthorized" in answer["msg"]
    assert "canary" not in printed


def test_a_node_without_images_is_described(tmp_path: Path) -> None:
    ctr = tmp_path / "ctr"
    ctr.write_text(CTR)
    ctr.chmod(0o755)
    answer, _printed = run("kubevirt_node_image_info", runtime="containerd", ctr=str(ctr))
    assert (answer["runtime"], answer["images"], answer["changed"]) == ("containerd", {}, False)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks in the README, the READMEs of roles and the guides take the options of their modules."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._console import console, screenshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import argspec as migration_argspec
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward import task as port_forward
from ansible_collections.virtops.kubevirt.plugins.module_utils._service import ensure
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.read import info_argspec
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import argspec, instance_argspec

ROOT = Path(__file__).resolve().parents[4]
PREFIX = "virtops.kubevirt."
SPECS = {
    "kubevirt_vm": argspec.vm_spec(),
    "kubevirt_vmi": instance_argspec.vmi_spec(),
    "kubevirt_replicaset": instance_argspec.replicaset_spec(),
    "kubevirt_pool": instance_argspec.pool_spec(),
    "kubevirt_service": ensure.argument_spec(),
    "kubevirt_console": console.argument_spec(),
    "kubevirt_port_forward": port_forward.argument_spec(),
    "kubevirt_screenshot": {**screenshot.argument_spec(), **FILE_COMMON_ARGUMENTS},
    "kubevirt_migration": migration_argspec.migration_spec(),
    "kubevirt_vm_info": info_argspec.info_spec(),
    "kubevirt_vmi_info": info_argspec.vmi_info_spec(),
}
_MARKDOWN = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RST = re.compile(r"^\.\. code-block:: yaml\n\n((?:    .*\n|\n)+)", re.MULTILINE)


def tasks(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the mappings inside a value that name a module of this collection."""
    if isinstance(value, list):
        for item in value:
            yield from tasks(item)
    elif isinstance(value, dict):
        if any(str(key).startswith(f"{PREFIX}kubevirt_") for key in value):
            yield value
        for inner in value.values():
            yield from tasks(inner)


def documented() -> Iterator[Any]:
    """Yield each task of each page."""
    pages = [ROOT / "README.md", *ROOT.glob("roles/*/README.md"), *ROOT.glob("docs/docsite/rst/*.rst")]
    for page in sorted(pages):
        blocks = (_RST if page.suffix == ".rst" else _MARKDOWN).findall(page.read_text())
        for block in blocks:
            for task in tasks(yaml.safe_load(textwrap.dedent(block))):
                yield pytest.param(task, id=f"{page.name}: {task['name']}")


@pytest.mark.parametrize("task", [*documented()])
def test_a_documented_task_is_accepted(task: dict[str, Any]) -> None:
    (name,) = [key for key in task if key.startswith(PREFIX)]
    result = ArgumentSpecValidator(SPECS[name.removeprefix(PREFIX)]).validate(task[name] or {})
    assert result.error_messages == []

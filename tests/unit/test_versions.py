# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One version and one set of pins in all files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def about() -> dict[str, Any]:
    """Return the metadata of the collection, from its sources or from a build."""
    if (ROOT / "galaxy.yml").exists():
        return yaml.safe_load((ROOT / "galaxy.yml").read_text())
    return json.loads((ROOT / "MANIFEST.json").read_text())["collection_info"]


def version() -> str:
    """Return the version of the collection."""
    return about()["version"]


def test_collections_that_the_roles_use_are_dependencies() -> None:
    """ansible-galaxy installs only the dependencies."""
    tasks = [path.read_text() for part in ("roles", "playbooks") for path in (ROOT / part).rglob("tasks/*.yml")]
    used = set(re.findall(r"^ *-? *(\w+\.\w+)\.\w+:", "\n".join(tasks), re.MULTILINE)) - {"ansible.builtin"}

    assert used - {"virtops.kubevirt"} == set(about()["dependencies"])


@pytest.mark.parametrize(
    ("role", "variable"),
    [("control_plane", "__control_plane_version"), ("launcher_image", "__launcher_image_version")],
)
def test_a_role_has_the_version_of_its_collection(role: str, variable: str) -> None:
    variables = yaml.safe_load((ROOT / f"roles/{role}/vars/main.yml").read_text())

    assert variables[variable] == version()


def test_the_python_project_has_the_version_of_the_collection() -> None:
    assert f'version = "{version()}"' in (ROOT / "pyproject.toml").read_text()


def test_the_environment_has_the_pinned_versions() -> None:
    pins = re.findall(r'"([a-z0-9-]+==[0-9.]+)"', (ROOT / "pyproject.toml").read_text())
    installed = (ROOT / "requirements.txt").read_text().splitlines()

    assert pins
    assert [pin for pin in pins if pin not in {line.replace("_", "-") for line in installed}] == []

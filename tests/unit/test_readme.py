# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test can follow the README: its commands and files are found, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests.e2e.readme import read_story

ROOT = Path(__file__).resolve().parents[2]
STORY = read_story()
JINJAS = {"from_yaml", "inventory_hostnames", "to_json"}
"""Names in templates that are no variables."""


def test_the_files_are_those_that_the_commands_use() -> None:
    assert set(STORY.files) == {"inventory.yml", "web.yml"}
    for name, text in STORY.files.items():
        assert yaml.safe_load(text), name
        assert any(name in command for command in STORY.commands)


@pytest.mark.parametrize("command", [item for item in STORY.commands if "virtops.kubevirt." in item])
def test_every_named_playbook_exists_and_reads_the_inventory(command: str) -> None:
    (name,) = [word for word in command.split() if word.startswith("virtops.kubevirt.")]
    assert (ROOT / "playbooks" / f"{name.rpartition('.')[2]}.yml").is_file()
    assert "-i inventory.yml" in command


def test_the_tarball_is_the_one_that_is_built() -> None:
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] if (ROOT / "galaxy.yml").exists() else None
    assert version is None or any(f"virtops-kubevirt-{version}.tar.gz" in command for command in STORY.commands)


def plays() -> list[tuple[Path, dict[str, Any]]]:
    return [
        (path, item) for path in sorted((ROOT / "playbooks").glob("*.yml")) for item in yaml.safe_load(path.read_text())
    ]


def test_our_playbooks_use_hosts_that_were_checked() -> None:
    for path, play in plays():
        looks = play.get("name") == "Check which hosts are selected"
        assert "import_playbook" in str(play) or looks or ".__kubevirt_selected." in play["hosts"], path


def test_variables_of_playbooks_have_a_prefix_and_are_in_the_readme() -> None:
    """Options of the roles, which begin with the name of the role, and those of the playbooks."""
    roles = tuple(f"{path.name}_" for path in (ROOT / "roles").iterdir())
    files = [path for path in (ROOT / "playbooks").rglob("*") if path.is_file()]
    words = {
        word for path in files for word in re.findall(r"(?<![\w./-])[a-z]+(?:_[a-z]+)+(?![\w.(-])", expressions(path))
    }
    variables = words - JINJAS
    own = sorted(item for item in variables if not item.startswith(("__", "ansible_", *roles)))

    assert {item.partition("_")[0] for item in own} == {"kubevirt", "provision", "upgrade"}
    readme = (ROOT / "README.md").read_text()
    assert [item for item in own if item not in readme and f"`_{item.partition('_')[2]}`" not in readme] == [
        "provision_mistyped",
        "upgrade_mistyped",
    ]


def expressions(path: Path) -> str:
    """Return the templates and conditions of a file, without quoted texts."""
    text = re.sub(r"(?m)^\s*#.*$", "", path.read_text())
    matches = [*re.findall(r"{{(.*?)}}", text, re.DOTALL), *re.findall(r"(?m)^\s*(?:that|when|-): ?(.*)$", text)]
    matches += re.findall(r"(?m)^\s*- (\w+ is .*)$", text)
    return " ".join(re.sub(r"'[^']*'", "", item) for item in matches)

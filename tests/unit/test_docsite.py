# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the guides match modules and roles. `nox -s docs` checks that they render, in a folder of any
name.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS

from tests.sanity import docsite

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs/docsite/rst").glob("*.rst"))
OURS = "virtops.kubevirt."


def examples(guide: Path) -> list[Any]:
    """Return the parsed YAML blocks of a guide."""
    blocks = re.findall(r"(?m)^\.\. code-block:: yaml\n\n((?:    .*\n|\n)+)", guide.read_text())
    return [yaml.safe_load(textwrap.dedent(block)) for block in blocks]


def tasks(example: Any) -> list[dict[str, Any]]:
    """Return the tasks in an example: those of its plays, or its own."""
    listed = example if isinstance(example, list) else []
    return [task for item in listed for task in item.get("tasks", [item])]


def options(module: str) -> set[str]:
    """Return the options of a module and of its fragments."""
    known: set[str] = set()
    names = [f"modules/{module}", *(f"doc_fragments/{item}" for item in ("auth", "wait", "machine", "read"))]
    for text in ((ROOT / f"plugins/{name}.py").read_text() for name in names):
        matches = re.search(r'DOCUMENTATION = r"""\n(.*?)"""', text, re.DOTALL)
        assert matches
        documentation = yaml.safe_load(matches.group(1))
        known |= set(documentation["options"])
        if "ansible.builtin.files" in documentation.get("extends_documentation_fragment", ()):
            known |= set(FILE_COMMON_ARGUMENTS)
    return known


def variables(role: str) -> set[str]:
    """Return the variables of a role."""
    specs = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text())
    return set(specs["argument_specs"]["main"]["options"])


@pytest.mark.parametrize("guide", GUIDES, ids=[guide.stem for guide in GUIDES])
def test_examples_use_existing_options(guide: Path) -> None:
    unknown = [task for example in examples(guide) for task in tasks(example)]

    assert unknown, "a guide shows how"
    for task in unknown:
        for key, value in task.items():
            if key.startswith(OURS):
                assert set(value or {}) <= options(key.removeprefix(OURS))
        role = (task.get("ansible.builtin.include_role") or {}).get("name", "")
        if role.startswith(OURS):
            assert set(task["vars"]) <= variables(role.removeprefix(OURS))


@pytest.mark.parametrize("guide", GUIDES, ids=[guide.stem for guide in GUIDES])
def test_variables_on_command_lines_belong_to_a_role(guide: Path) -> None:
    named = set(re.findall(r"-e (\w+)=", guide.read_text()))

    assert named <= {name for role in (ROOT / "roles").iterdir() for name in variables(role.name)}


def test_every_guide_is_in_the_table_of_contents() -> None:
    sections = yaml.safe_load((ROOT / "docs/docsite/extra-docs.yml").read_text())["sections"]

    assert sorted(name for section in sections for name in section["toctree"]) == [guide.stem for guide in GUIDES]


@pytest.mark.parametrize(
    ("message", "times"),
    [
        pytest.param('Unknown target name: "antsibull-docs-e47xoht".', 3, id="its folder is called like a link"),
        pytest.param('Unknown target name: "another".', 1, id="another link leads nowhere"),
    ],
)
def test_a_folder_with_the_name_of_a_link_is_no_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], message: str, times: int
) -> None:
    seen = tmp_path / "seen"
    program = f"import sys; open({str(seen)!r}, 'a').write('x'); print({message!r}); sys.exit(3)"
    assert docsite.run([sys.executable, "-c", program], dict(os.environ)) == 3
    assert (len(seen.read_text()), capfd.readouterr().out) == (times, f"{message}\n")

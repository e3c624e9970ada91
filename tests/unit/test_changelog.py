# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fragments are reStructuredText: CHANGELOG.rst would show the markup of Ansible and Markdown raw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHANGELOGS = Path(__file__).resolve().parents[2] / "changelogs"
WRITTEN = [*sorted((CHANGELOGS / "fragments").glob("*.y*ml")), CHANGELOGS / "changelog.yaml"]
FOREIGN = re.compile(r"\b(?:[BCEILMOPUV]|RV)\(|(?<!`)`(?!`)|\]\(")


def foreign_markup(text: str) -> list[str]:
    """Return the places with markup that is not reStructuredText."""
    outside = re.sub(r"``.*?``", lambda code: " " * len(code[0]), text, flags=re.DOTALL)
    return [text[places.start() : places.start() + 30] for places in FOREIGN.finditer(outside)]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda item: item.name)
def test_a_fragment_writes_code_in_restructuredtext(path: Path) -> None:
    assert foreign_markup(path.read_text()) == []


@pytest.mark.parametrize("text", ["C(stop)", "with `stop`", "[here](https://a.example)", "RV(resources)"])
def test_other_markup_is_detected(text: str) -> None:
    assert foreign_markup(f"virt-api - {text}.") != []

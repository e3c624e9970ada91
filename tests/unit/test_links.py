# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links of the pages that Galaxy shows. It resolves no path, so they are absolute and lead to the version's tag."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("roles/*/README.md"))]
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"\]\(([^)\s]+)\)")
_DEFINED = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.MULTILINE)
_NAMED = re.compile(r"\[([^\]]+)\](?:\[([^\]]+)\])?(?![(:])")


def prose(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return _BLOCK.sub("", page.read_text())


def addresses(text: str) -> list[str]:
    """Return the addresses that a page links to."""
    return [*_INLINE.findall(text), *(address for _name, address in _DEFINED.findall(text))]


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def flaw(address: str, repository: str, version: str) -> str:
    """Return what is wrong with an address, "" for a good one."""
    if not address.startswith("https://"):
        return "is relative"
    if not address.startswith((f"{repository}/blob/", f"{repository}/tree/")):
        return ""
    kind, tag, path = address.removeprefix(f"{repository}/").split("/", 2)
    path, _hash, anchor = path.partition("#")
    target = ROOT / path
    if tag != version:
        return f"leads to {tag}, not to {version}"
    if not (target.is_file() if kind == "blob" else target.is_dir()):
        return "leads to a file that does not exist"
    return "" if not anchor or anchor in headings(target) else "leads to a heading that does not exist"


@pytest.mark.skipif(not (ROOT / "galaxy.yml").exists(), reason="a build has no galaxy.yml")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_works_on_galaxy(page: Path) -> None:
    about = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    found = addresses(prose(page))
    assert found
    flaws = {address: flaw(address, about["repository"], about["version"]) for address in found}
    assert {address: text for address, text in flaws.items() if text} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_named_link_has_an_address_and_every_address_is_used(page: Path) -> None:
    text = prose(page)
    defined = [name for name, _address in _DEFINED.findall(text)]
    used = {target or name for name, target in _NAMED.findall(re.sub(r"`[^`\n]*`", "code", text))}
    assert len(defined) == len(set(defined))
    assert set(defined) == used

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image gets the modules that its process imports, directly or not, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from images.imports import files_of

FILES = {
    "app/__init__.py": "",
    "app/logs.py": "import json\n",
    "app/server/__init__.py": "",
    "app/server/__main__.py": "from app import logs\nfrom app.server.routes import ROUTES\n",
    "app/server/routes.py": "def load():\n    from ..model import thing as thing_module\n",
    "app/server/schema.json": "{}",
    "app/server/README.md": "",
    "app/model/__init__.py": "",
    "app/model/thing.py": "import vocabulary.names\n",
    "app/model/unused.py": "",
    "app/client/__init__.py": "",
    "app/client/__main__.py": "",
    "vocabulary/__init__.py": "",
    "vocabulary/names.py": "",
}


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, Path]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"app": tmp_path / "app", "vocabulary": tmp_path / "vocabulary"}


def test_what_is_reachable_comes_along_and_nothing_else(packages: dict[str, Path]) -> None:
    assert list(files_of(packages, ["app.server"])) == [
        "app/__init__.py",
        "app/logs.py",
        "app/model/__init__.py",
        "app/model/thing.py",
        "app/server/__init__.py",
        "app/server/__main__.py",
        "app/server/routes.py",
        "app/server/schema.json",
        "vocabulary/__init__.py",
        "vocabulary/names.py",
    ]


def test_an_entry_that_does_not_exist_is_named(packages: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match=r"no package app\.sever to put into an image"):
        files_of(packages, ["app.sever"])

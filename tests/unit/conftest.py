# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make this checkout importable as ansible_collections.virtops.kubevirt, whatever its folder is called."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _package(name: str, *paths: Path) -> None:
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__path__ = [str(path) for path in paths]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__spec__.submodule_search_locations = module.__path__
        sys.modules[name] = module
        parent, _unused, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


# ansible-test has its own loader, with the collection in place.
if ROOT.parts[-3:] != ("ansible_collections", "virtops", "kubevirt"):
    _package("ansible_collections")
    _package("ansible_collections.virtops")
    _package("ansible_collections.virtops.kubevirt", ROOT)
COLLECTION = sys.modules.get("ansible_collections.virtops.kubevirt") or types.ModuleType("kubevirt")

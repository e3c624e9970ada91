# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of kubevirt_migration and kubevirt_migration_info. A test compares them with the documentation."""

from __future__ import annotations

from typing import Any

from .._client.argspec import auth_argument_spec
from .._vm.read import info_argspec
from .._vm.request import argspec

STATES = ("absent", "present")
EXCLUSIVE = [["target_node", "node_selector"]]


def migration_spec() -> dict[str, Any]:
    """Return the options of kubevirt_migration."""
    waiting = argspec.wait_spec()
    waiting["wait"] = {"type": "bool", "default": True}
    waiting["wait_timeout"] = {"type": "int", "default": 600}
    return {
        **auth_argument_spec(),
        **waiting,
        **_one(),
        "state": {"type": "str", "choices": list(STATES), "default": "present"},
        "unmovable": {"type": "str", "choices": ["fail", "leave"], "default": "fail"},
        "parallel": {"type": "int", "default": 8},
        "vms": {"type": "list", "elements": "dict", "options": _one(), "mutually_exclusive": EXCLUSIVE},
    }


def _one() -> dict[str, Any]:
    return {
        "name": {"type": "str"},
        "namespace": {"type": "str"},
        "state": {"type": "str", "choices": list(STATES)},
        "from_node": {"type": "str"},
        "target_node": {"type": "str"},
        "node_selector": {"type": "dict"},
    }


def migration_info_spec() -> dict[str, Any]:
    """Return the options of kubevirt_migration_info."""
    spec = {**info_argspec.info_spec(), "vm": {"type": "str"}, "unfinished": {"type": "bool", "default": False}}
    del spec["fail_fast"]  # a migration ends by itself, and this module does not know its target
    return spec

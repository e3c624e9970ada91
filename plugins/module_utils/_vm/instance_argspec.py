# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of kubevirt_vmi and kubevirt_replicaset, of the parts of kubevirt_vm. As there, a test compares them."""

from __future__ import annotations

from typing import Any

from .._client.argspec import auth_argument_spec
from . import argspec

EXCLUSIVE = [["name", "generate_name"]]
STATES = ("absent", "present", *argspec.GUEST_STATES, "frozen", "unfrozen")


def vmi_spec() -> dict[str, Any]:
    """Return the options of kubevirt_vmi."""
    return {
        **auth_argument_spec(),
        **argspec.wait_spec(),
        "wait_condition": argspec.wait_condition(),
        **_one_vmi(),
        "state": {"type": "str", "choices": list(STATES), "default": "present"},
        "force": {"type": "bool", "default": False},
        "vmis": {"type": "list", "elements": "dict", "options": _one_vmi(), "mutually_exclusive": EXCLUSIVE},
    }


def _one_vmi() -> dict[str, Any]:
    return {
        **argspec.identity(),
        **argspec.machine(),
        "start_paused": {"type": "bool"},
        "state": {"type": "str", "choices": list(STATES)},
        "unfreeze_timeout": {"type": "int"},
        "force": {"type": "bool"},
        "delete_options": {"type": "dict", "options": argspec.delete_options()},
    }


def replicaset_spec() -> dict[str, Any]:
    """Return the options of kubevirt_replicaset."""
    return {
        **auth_argument_spec(),
        **argspec.wait_spec(),
        "wait_condition": argspec.wait_condition(),
        **argspec.identity(),
        **argspec.machine(),
        "replicas": {"type": "int"},
        "paused": {"type": "bool"},
        "selector": {"type": "dict"},
        "state": {"type": "str", "choices": ["absent", "present"], "default": "present"},
        "force": {"type": "bool", "default": False},
        "delete_options": {"type": "dict", "options": argspec.delete_options()},
    }

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of kubevirt_vmi, kubevirt_replicaset and kubevirt_pool. A test compares them with the documentation."""

from __future__ import annotations

from typing import Any

from ..._client.argspec import auth_argument_spec
from ...kubevirt_api import names, run_strategies
from ..merge.keyed_lists import STRATEGIES
from . import argspec

EXCLUSIVE = [["name", "generate_name"]]
STATES = ("absent", "present", *argspec.GUEST_STATES, "frozen", "unfrozen")
SORT_POLICIES = ("AscendingOrder", "DescendingOrder", "Newest", "Oldest", "Random")
PRESERVATIONS = ("Disabled", "Offline", "Online")


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
    return _set_spec(names.API_VERSION)


def pool_spec() -> dict[str, Any]:
    """Return the options of kubevirt_pool."""
    return {
        **_set_spec(names.POOL_API_VERSION),
        "run_strategy": {"type": "str", "choices": sorted(run_strategies.BUILT)},
        "instancetype": {"type": "dict"},
        "preference": {"type": "dict"},
        "data_volume_templates": {"type": "list", "elements": "dict"},
        "name_generation": {
            "type": "dict",
            "options": {"config_maps": {"type": "bool"}, "secrets": {"type": "bool", "no_log": False}},
        },
        "max_unavailable": {"type": "str"},
        "update_strategy": {"type": "dict", "options": _strategy()},
        "scale_in_strategy": {
            "type": "dict",
            "options": {**_strategy(), "state_preservation": {"type": "str", "choices": list(PRESERVATIONS)}},
        },
    }


def _strategy() -> dict[str, Any]:
    return {
        "type": {"type": "str", "choices": sorted(STRATEGIES), "required": True},
        "sort_policy": {"type": "str", "choices": list(SORT_POLICIES)},
        "label_selector": {"type": "dict"},
        "node_selector_requirements": {"type": "list", "elements": "dict"},
    }


def _set_spec(api_version: str) -> dict[str, Any]:
    return {
        **auth_argument_spec(),
        **argspec.wait_spec(api_version),
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

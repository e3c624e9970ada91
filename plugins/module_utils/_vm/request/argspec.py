# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of kubevirt_vm, and the parts that other modules share (instance_argspec, info_argspec).

A test and validate-modules compare them with the modules' documentation.
"""

from __future__ import annotations

from typing import Any

from ..._client.argspec import auth_argument_spec
from ...kubevirt_api import names, run_strategies

GUEST_STATES = ("paused", "unpaused", "reset", "softrebooted")
STATES = ("absent", "present", "restarted", "started", "stopped", *GUEST_STATES)
EVICTION_STRATEGIES = ("External", "LiveMigrate", "LiveMigrateIfPossible", "None")
HIDDEN_FIELDS = ["metadata.annotations[kubemacpool.io/transaction-timestamp]", "metadata.managedFields"]
EXCLUSIVE = [["name", "generate_name"], ["running", "run_strategy"]]


def wait_spec(api_version: str = names.API_VERSION) -> dict[str, Any]:
    """Return the options that say how long to wait, and for what not to look."""
    return {
        "api_version": {"type": "str", "default": api_version},
        "wait": {"type": "bool", "default": False},
        "wait_sleep": {"type": "int"},
        "wait_timeout": {"type": "int", "default": 120},
        "fail_fast": {"type": "bool", "default": True},
        "hidden_fields": {"type": "list", "elements": "str", "default": HIDDEN_FIELDS},
    }


def wait_condition() -> dict[str, Any]:
    """Return the option that names a condition."""
    return {
        "type": "dict",
        "options": {
            "type": {"type": "str", "required": True},
            "status": {"type": "str", "choices": ["True", "False", "Unknown"], "default": "True"},
            "reason": {"type": "str"},
        },
    }


def vm_spec() -> dict[str, Any]:
    """Return the options of kubevirt_vm."""
    return {
        **auth_argument_spec(),
        **wait_spec(),
        "wait_condition": wait_condition(),
        "wait_for_claims": {"type": "bool", "default": False},
        **_one_vm(),
        "state": {"type": "str", "choices": list(STATES), "default": "present"},
        "force": {"type": "bool", "default": False},
        "vms": {"type": "list", "elements": "dict", "options": _one_vm(), "mutually_exclusive": EXCLUSIVE},
    }


def _one_vm() -> dict[str, Any]:
    return {
        **identity(),
        **machine(),
        "state": {"type": "str", "choices": list(STATES)},
        "running": {"type": "bool"},
        "run_strategy": {"type": "str", "choices": sorted(run_strategies.BUILT)},
        "start_paused": {"type": "bool"},
        "instancetype": {"type": "dict"},
        "preference": {"type": "dict"},
        "data_volume_templates": {"type": "list", "elements": "dict"},
        "force": {"type": "bool"},
        "delete_options": {"type": "dict", "options": delete_options()},
        "grace_period_seconds": {"type": "int"},
        "restart": {"type": "str", "choices": ["if_required", "never"]},
    }


def identity() -> dict[str, Any]:
    """Return the options of the object's identity, labels and annotations."""
    return {
        "name": {"type": "str"},
        "generate_name": {"type": "str"},
        "namespace": {"type": "str"},
        "definition": {"type": "dict", "aliases": ["resource_definition"]},
        "annotations": {"type": "dict"},
        "labels": {"type": "dict"},
    }


def machine() -> dict[str, Any]:
    """Return the options that describe a machine."""
    items = {"type": "list", "elements": "dict"}
    return {
        "spec": {"type": "dict"},
        "cpu": {"type": "dict", "options": _cpu()},
        "memory": {"type": "str"},
        "image": {"type": "str"},
        "cloud_init": {"type": "dict", "options": _cloud_init()},
        "disks": dict(items),
        "volumes": dict(items),
        "interfaces": dict(items),
        "networks": dict(items),
        "eviction_strategy": {"type": "str", "choices": list(EVICTION_STRATEGIES)},
        "further_attempts": {"type": "int"},
        "run_timeout": {"type": "int"},
    }


def _cpu() -> dict[str, Any]:
    return {
        "cores": {"type": "int"},
        "sockets": {"type": "int"},
        "threads": {"type": "int"},
        "model": {"type": "str"},
    }


def _cloud_init() -> dict[str, Any]:
    return {
        "type": {"type": "str", "choices": ["no_cloud", "config_drive"], "default": "no_cloud"},
        "user_data": {"type": "str", "no_log": True},
        "user_data_secret": {"type": "str", "no_log": False},
        "network_data": {"type": "str", "no_log": True},
        "network_data_secret": {"type": "str", "no_log": False},
    }


def delete_options() -> dict[str, Any]:
    """Return the suboptions of a deletion."""
    return {
        "propagationPolicy": {"type": "str", "choices": ["Foreground", "Background", "Orphan"]},
        "preconditions": {
            "type": "dict",
            "options": {"resourceVersion": {"type": "str"}, "uid": {"type": "str"}},
        },
    }

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of test_upgrade.py, by name: the responses of their clusters, and their variables."""

from __future__ import annotations

from typing import Any

NEW, OLD = "registry/virt-launcher:0.2.0", "registry/virt-launcher:0.1.0"
SERVING = {"kind": "Deployment", "name": "virt-api", "version": "0.2.0", "missing": ""}
STUCK = {"kind": "DaemonSet", "name": "virt-handler", "version": "0.1.0", "missing": "1 of 3 updated, 1 ready"}
FOUND: dict[str, Any] = {
    "owner": "ours",
    "version": "0.1.0",
    "definitions_version": "0.2.0",
    "components": [SERVING, STUCK],
    "nodes_not_ready": [],
    "in_other_launchers": [],
    "check_mode": False,
}


LOCAL = {
    "__control_plane_image": "localhost/virtops/control-plane:0.2.0",
    "__control_plane_launcher_image": "localhost/virtops/virt-launcher:0.2.0",
}


def machine(name: str, reason: str = "", *, undecided: bool = False) -> dict[str, Any]:
    reported = {"can_move": not reason, "undecided": undecided, "reason": reason}
    return {"namespace": "shop", "name": name, "launcher": OLD, **reported}


def migration(vm: str, **annotations: str) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": f"{vm}-1"} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, "spec": {"vmiName": vm}}


OURS = migration("ours", **{"kubevirt.io/workloadUpdateMigration": ""})
VARIABLES = {
    "mistyped": {"upgrade_wait_machine": True},
    "rather_mistyped": {"upgrade_wait_time": 5},
    "of_another_tool": {"upgrade_packages": True, "upgrade_wait": 5, "upgrade_reboot": "if_needed"},
    "no_number": {"upgrade_wait_timeout": "soon"},
    "no_truth": {"upgrade_not_ready_nodes": "perhaps"},
    "unwaited": {"control_plane_wait": "false"},
    "in_vain": {"upgrade_wait_machines": True},
    "moved": {"upgrade_wait_machines": "yes", "control_plane_workload_update_methods": ["LiveMigrate"]},
    "nothing_said": {},
}
CHECKS: dict[str, dict[str, Any]] = {
    "empty": {"found": {"owner": "none", "components": []}},
    "definitions_alone": {"found": {"components": []}},
    "away": {"found": {"nodes_not_ready": ["node-3"]}},
    "left_behind": {"found": {"nodes_not_ready": ["node-3"]}, "upgrade_not_ready_nodes": "true"},
    "limited": {"__kubevirt_left_out": ["node-2", "node-3"]},
    "limited_to_the_ready": {
        "found": {"nodes_not_ready": ["node-3"]},
        "upgrade_not_ready_nodes": True,
        "__kubevirt_left_out": ["node-2", "node-3.example.com", "node-33"],
    },
    "limited_without_leave": {"found": {"nodes_not_ready": ["10.0.0.2"]}, "__kubevirt_left_out": ["10.0.0.2"]},
    "limited_by_addresses": {
        "found": {"nodes_not_ready": ["10.0.0.2"]},
        "upgrade_not_ready_nodes": True,
        "__kubevirt_left_out": ["10.0.0.3"],
    },
    "limited_to_all_that_are_there": {
        "found": {"nodes_not_ready": ["node-2", "node-3.example.com", "10.0.0.2"]},
        "upgrade_not_ready_nodes": True,
        "__kubevirt_left_out": ["node-2.example.com", "node-3", "10.0.0.2"],
    },
    "limited_to_its_cluster": {"found": {"nodes": ["node-1"]}, "__kubevirt_left_out": ["node-2", "10.0.0.3"]},
    "limited_but_one_that_is_off": {
        "found": {"nodes": ["node-1", "worker-3"], "nodes_not_ready": ["worker-3"]},
        "upgrade_not_ready_nodes": True,
        "__kubevirt_left_out": ["10.0.0.3"],
    },
    "limited_to_others": {"found": {"nodes": ["node-1.example.com"]}, "__kubevirt_left_out": ["node-1", "10.0.0.3"]},
    "limited_to_too_few": {"found": {"nodes": ["node-1", "node-2"]}, "__kubevirt_left_out": ["10.0.0.3"]},
    "of_another_tag": {"__control_plane_image": "localhost/virtops/control-plane:0.3.0"},
    "of_another_place": LOCAL | {"launcher_image_registry": "registry.example/virtops"},
    "of_the_same_place": LOCAL,
    "by_hand": LOCAL | {"launcher_image_names": ["test-guest"], "launcher_image_tag": "9"},
    "by_digest": {"__control_plane_image": "localhost/virtops/control-plane@sha256:1", "launcher_image_tag": "9"},
    "moving": {"migrations": [migration("web", team="a"), migration("db"), OURS]},
    "awaited": {"migrations": [migration("web")], "upgrade_wait_migrations": True},
    "not_awaited_in_check_mode": {
        "migrations": [migration("web")],
        "found": {"check_mode": True},
        "upgrade_wait_migrations": True,
    },
    "own": {"migrations": [OURS]},
    "well": {},
}
MACHINES: dict[str, dict[str, Any]] = {
    "none_older": {},
    "stays_put": {"found": {"in_other_launchers": [machine("web"), machine("db", "a disk is the node's")]}},
    "is_moved": {"found": {"in_other_launchers": [machine("web")]}, "control_plane_workload_update_methods": ["Evict"]},
    "cannot_leave": {
        "found": {"in_other_launchers": [machine("db", "a disk is the node's")]},
        "control_plane_workload_update_methods": ["LiveMigrate"],
        "upgrade_wait_machines": True,
    },
    "is_starting": {
        "found": {"in_other_launchers": [machine("db", "it is Scheduled", undecided=True)]},
        "later": {"in_other_launchers": []},
        "control_plane_workload_update_methods": ["LiveMigrate"],
        "upgrade_wait_machines": True,
    },
    "is_too_slow": {
        "found": {"in_other_launchers": [machine("web")]},
        "control_plane_workload_update_methods": ["LiveMigrate"],
        "upgrade_wait_machines": True,
        "upgrade_wait_timeout": 1,
    },
    "is_not_evicted": {
        "found": {"in_other_launchers": [machine("db", "a disk is the node's")]},
        "control_plane_workload_update_methods": ["LiveMigrate", "Evict"],
        "upgrade_wait_machines": True,
        "upgrade_wait_timeout": 1,
    },
    "has_left": {"control_plane_workload_update_methods": ["LiveMigrate"], "upgrade_wait_machines": True},
    "check_mode": {
        "found": {"in_other_launchers": [machine("web")], "check_mode": True},
        "control_plane_workload_update_methods": ["LiveMigrate"],
        "upgrade_wait_machines": True,
    },
}
STANDING: dict[str, dict[str, Any]] = {
    "stands": {},
    "is_silent": {"answer": {"failed": True, "msg": "the API server does not answer"}},
}

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of `lab status`: one JSON object, or a few lines of text."""

from __future__ import annotations

from typing import Any

from lab.cluster.lab import Lab
from lab.cluster.waiting import is_ready
from lab.errors import ApiError
from lab.machines import network
from lab.machines.machine import Machine


def collect_status(lab: Lab) -> dict[str, Any]:
    """Return the status. States: running, frozen, cut, down; Ready is from the API. Raises LabError without a lab."""
    description = lab.describe()
    control_plane = lab.control_plane
    control_plane_pid = control_plane.pid()
    ready = _ready_nodes(lab) if control_plane_pid and not control_plane.is_frozen() else {}
    up = network.links_up(pid=control_plane_pid) if control_plane_pid else set()
    return {
        "name": lab.name,
        "server": description.addresses.server,
        "kubeconfig": str(lab.kubeconfig),
        "audit_log": str(lab.audit_log),
        "control_plane": {"state": _state(control_plane, control_plane_pid), **_processes(control_plane)},
        "nodes": [
            {
                "name": node.name,
                "address": str(description.addresses.node(number)),
                "state": _state(node, node.pid(), is_connected=node.name in up),
                "ready": ready.get(node.name, False),
                **_processes(node),
            }
            for number, node in enumerate(lab.nodes(), start=1)
        ],
        "programs": description.programs,
        "images": sorted(description.images.values()),
    }


def render_status(status: dict[str, Any]) -> str:
    def line(name: str, machine: dict[str, Any]) -> str:
        pids = "  ".join(f"{program}={pid or 'down'}" for program, pid in sorted(machine["pids"].items()))
        ready = "" if "ready" not in machine else ("  Ready" if machine["ready"] else "  NotReady")
        return f"{name:<8} {machine['state']}{ready}  {pids}"

    lines = [
        f"lab {status['name']} at {status['server']}",
        f"kubeconfig  {status['kubeconfig']}",
        f"audit log   {status['audit_log']}",
        *(f"not built   {name} from {path}" for name, path in sorted(status["programs"].items())),
        line("cp", status["control_plane"]),
        *(line(node["name"], node) for node in status["nodes"]),
    ]
    return "\n".join(lines)


def _state(machine: Machine, pid: int | None, *, is_connected: bool = True) -> str:
    if pid is None:
        return "down"
    if machine.is_frozen():
        return "frozen"
    return "running" if is_connected else "cut"


def _processes(machine: Machine) -> dict[str, Any]:
    states = machine.programs()
    return {
        "pid": machine.pid(),
        "pids": {name: state.pid for name, state in states.items()},
        "restarts": {name: state.restarts for name, state in states.items()},
        "logs": str(machine.paths.logs),
    }


def _ready_nodes(lab: Lab) -> dict[str, bool]:
    try:
        items = (lab.api().get("/api/v1/nodes") or {}).get("items", [])
    except ApiError:
        return {}
    return {node["metadata"]["name"]: is_ready(node) for node in items}

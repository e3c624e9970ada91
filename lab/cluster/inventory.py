# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ansible inventory of a lab: its nodes as hosts of group kubevirt_nodes, reached by the lab_node connection."""

from __future__ import annotations

import json
import sys
from typing import Any

from lab.cluster.lab import Lab
from lab.collection import ROOT

GROUP = "kubevirt_nodes"


def build_inventory(lab_name: str, nodes: list[str], *, kubeconfig: str, python: str, sources: str) -> dict[str, Any]:
    """Return the inventory. The host's interpreter works inside a node: the overlay root shows the host's files.

    Commands on a node run as root, so a play with `become` needs no sudo.
    """
    host_vars = {
        "ansible_connection": "lab_node",
        "ansible_become": False,
        "ansible_lab_name": lab_name,
        "ansible_lab_python": python,
        "ansible_lab_sources": sources,
        "ansible_python_interpreter": python,
    }
    hosts = {node: {**host_vars, "ansible_host": node} for node in nodes}
    return {"all": {"vars": {"lab_kubeconfig": kubeconfig}, "children": {GROUP: {"hosts": hosts}}}}


def render_inventory(lab: Lab) -> str:
    """Return the inventory as JSON, which Ansible's yaml plug-in reads."""
    inventory = build_inventory(
        lab.name,
        lab.node_names(),
        kubeconfig=str(lab.kubeconfig),
        python=sys.executable,
        sources=str(ROOT),
    )
    return json.dumps(inventory, indent=1)

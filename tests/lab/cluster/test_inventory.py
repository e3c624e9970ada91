# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a lab."""

from __future__ import annotations

from lab.cluster.inventory import build_inventory


def test_nodes_are_hosts_of_kubevirt_nodes() -> None:
    inventory = build_inventory("t", ["node-1", "node-2"], kubeconfig="/k", python="/p", sources="/s")
    hosts = inventory["all"]["children"]["kubevirt_nodes"]["hosts"]
    assert list(hosts) == ["node-1", "node-2"]
    assert hosts["node-1"]["ansible_connection"] == "lab_node"
    assert hosts["node-1"]["ansible_python_interpreter"] == "/p"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run as a test observes it: phase, Events, the VM's status."""

from __future__ import annotations

from typing import Any

from tests.e2e.cluster import Cluster


def delete(cluster: Cluster, name: str) -> None:
    cluster.kubectl("delete", "vm", name, "--wait=false")


def phase(cluster: Cluster, name: str) -> str:
    vmi = cluster.get("vmi", name)
    return "" if vmi is None else str(vmi["status"].get("phase", ""))


def event_message(cluster: Cluster, uid: str, kind: str, reason: str) -> str:
    """Wait for an Event and return its message."""

    def look() -> str:
        return next((message for type_, why, message in cluster.events(uid) if (type_, why) == (kind, reason)), "")

    message: str = cluster.eventually(look, what=f"{kind} {reason} of {uid}")
    return message


def is_stopped(cluster: Cluster, name: str) -> dict[str, Any]:
    cluster.wait("vm", name, ".status.printableStatus", "Stopped")
    vm = cluster.get("vm", name)
    assert vm is not None
    (ready,) = [condition for condition in vm["status"]["conditions"] if condition["type"] == "Ready"]
    assert ready["status"] == "False"
    return vm

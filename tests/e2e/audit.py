# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who wrote what, and when, from the API server's audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

WRITES = ("create", "update", "patch", "delete", "deletecollection")
COMPONENTS = ("kubevirt-controller", "kubevirt-apiserver", "kubevirt-handler")


def writes(log: Path, namespace: str) -> Counter[tuple[str, str, str]]:
    """Count accepted writes of our components that concern a namespace: (component, verb, resource)."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for component, event in _accepted(log, namespace):
        where = event["objectRef"]
        resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
        if resource != "subjectaccessreviews":
            counted[component, event["verb"], resource] += 1
    return counted


def times(log: Path, namespace: str, resource: str) -> list[datetime]:
    """Return when our components have made objects of a resource in a namespace, the first time first."""
    made = (event for _unused, event in _accepted(log, namespace) if event["verb"] == "create")
    found = (item["requestReceivedTimestamp"] for item in made if item["objectRef"]["resource"] == resource)
    return sorted(map(datetime.fromisoformat, found))


def _accepted(log: Path, namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read each write of ours that concerns a namespace, with the component's name."""
    with log.open() as lines:
        for line in lines:
            if "serviceaccount:kubevirt:" not in line:
                continue
            event = json.loads(line)
            component = event["user"]["username"].rpartition(":")[2]
            is_here = event.get("objectRef", {}).get("namespace") == namespace
            if is_here and event["verb"] in WRITES and component in COMPONENTS:
                yield component, event

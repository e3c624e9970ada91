# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes and their times, from the audit log of the API server."""

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
    """Count accepted writes of our components in a namespace, by (component, verb, resource)."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for component, event in _accepted(log, namespace):
        where = event["objectRef"]
        resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
        if resource != "subjectaccessreviews":
            counted[component, event["verb"], resource] += 1
    return counted


def times(log: Path, namespace: str, resource: str) -> list[datetime]:
    """Return when our components created objects of a resource in a namespace, sorted."""
    creations = (event for _unused, event in _accepted(log, namespace) if event["verb"] == "create")
    timestamps = (
        creation["requestReceivedTimestamp"] for creation in creations if creation["objectRef"]["resource"] == resource
    )
    return sorted(map(datetime.fromisoformat, timestamps))


def _accepted(log: Path, namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each accepted write of ours in a namespace, with the name of the component."""
    with log.open() as lines:
        for line in lines:
            if "serviceaccount:kubevirt:" not in line:
                continue
            event = json.loads(line)
            component = event["user"]["username"].rpartition(":")[2]
            is_here = event.get("objectRef", {}).get("namespace") == namespace
            if is_here and event["verb"] in WRITES and component in COMPONENTS:
                yield component, event

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count who wrote what, from the API server's audit log."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

WRITES = ("create", "update", "patch", "delete", "deletecollection")
COMPONENTS = ("kubevirt-controller", "kubevirt-apiserver", "kubevirt-handler")


def writes(log: Path, namespace: str) -> Counter[tuple[str, str, str]]:
    """Count accepted writes of our components that concern a namespace: (component, verb, resource)."""
    counted: Counter[tuple[str, str, str]] = Counter()
    with log.open() as lines:
        for line in lines:
            if "serviceaccount:kubevirt:" not in line:
                continue
            event = json.loads(line)
            where = event.get("objectRef", {})
            component = event["user"]["username"].rpartition(":")[2]
            if where.get("namespace") != namespace or event["verb"] not in WRITES or component not in COMPONENTS:
                continue
            resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
            if resource != "subjectaccessreviews":
                counted[component, event["verb"], resource] += 1
    return counted

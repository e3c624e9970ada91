# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an object that a task names does not exist: its namespace is missing, or no object has its name."""

from __future__ import annotations

from .._client.api import Api, Resource
from .._client.errors import VirtError
from .kinds import VM, Kind

NAMESPACES = Resource("v1", "namespaces", "Namespace", None)


def reason(api: Api, namespace: str, kind: Kind = VM) -> str:
    """Return the reason and the remedy. Without the right to read the namespace, it may be missing as well."""
    try:
        is_missing = api.get(NAMESPACES, namespace) is None
    except VirtError:
        return f"there is no such {kind.noun} in namespace {namespace}; look at its name and at its namespace"
    if is_missing:
        return f"there is no namespace {namespace}; look at its name"
    return f"there is no such {kind.noun} in namespace {namespace}; look at its name"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether a live Service is for the target of a task. Any other is neither changed nor deleted. Pure.

The name of the Service defaults to that of the target, so an unrelated Service may have it by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kubevirt_api import names
from .exposure import ServiceRequest

Object = dict[str, Any]


def belongs(request: ServiceRequest, live: Object) -> bool:
    """Tell whether the target, or an earlier object of its name, owns the Service."""
    return request.kind is not None and any(
        (str(owner.get("apiVersion")).partition("/")[0], owner.get("kind"), owner.get("name"))
        == (names.GROUP, request.kind.name, request.target)
        for owner in live["metadata"].get("ownerReferences") or ()
    )


def refusal(params: Mapping[str, Any], request: ServiceRequest, live: Object, own: Mapping[str, str]) -> str:
    """Return an error for a Service of another target, "" for one that may be changed or deleted.

    own: the selector of a Service of this task. A task that gives a selector, or only a name, means this Service.
    """
    selector = (live.get("spec") or {}).get("selector") or {}
    own_selectors = (own, {names.VM_NAME: request.target})  # virtctl selects by this label
    if (
        request.kind is None
        or params.get("selector")
        or belongs(request, live)
        or (selector and selector in own_selectors)
    ):
        return ""
    if params.get("state") != "absent" and params.get("name") and [*selector] == [names.VMI_ID]:
        return ""  # moved from one machine to another
    return (
        f"Service {request.namespace}/{request.name} {_description(live, selector)}, and may not be for"
        f" {request.title}: give name for another Service, or selector to change this one; name alone, without an"
        " object to expose, deletes it (state=absent)"
    )


def _description(live: Object, selector: Mapping[str, str]) -> str:
    spec = live.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return f"is an alias of {spec.get('externalName')}"
    if not selector:
        return "has no selector"
    return f"selects other Pods ({','.join(f'{key}={value}' for key, value in sorted(selector.items()))})"

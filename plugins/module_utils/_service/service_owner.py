# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a Service is that has the name: only what is seen to be for the target is changed or deleted by it. Pure.

A Service has the name of what is exposed by default, so nobody need have said that this very one is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kubevirt_api import names
from .exposure import Wish

Object = dict[str, Any]


def belongs(wish: Wish, live: Object) -> bool:
    """Tell whether it has the target for an owner; a former one of the name counts as well."""
    return wish.kind is not None and any(
        (str(one.get("apiVersion")).partition("/")[0], one.get("kind"), one.get("name"))
        == (names.GROUP, wish.kind.name, wish.target)
        for one in live["metadata"].get("ownerReferences") or ()
    )


def others(params: Mapping[str, Any], wish: Wish, live: Object, own: Mapping[str, str]) -> str:
    """Say what a Service is that is not the target's; "" where it may be changed or deleted.

    own: the labels by which a Service of this task finds Pods. Who gives the selector, or nothing but the name, has
    said that this one is meant.
    """
    selector = (live.get("spec") or {}).get("selector") or {}
    ours = (own, {names.VM_NAME: wish.target})  # virtctl selects by the latter
    if wish.kind is None or params.get("selector") or belongs(wish, live) or (selector and selector in ours):
        return ""
    if params.get("state") != "absent" and params.get("name") and [*selector] == [names.VMI_ID]:
        return ""  # moved from one machine to another
    return (
        f"Service {wish.namespace}/{wish.name} {_what(live, selector)}, and is not known to be for {wish.title}: give"
        " name for another Service, or selector if it is this one that is to be changed; name alone, without what is"
        " exposed, deletes it (state=absent)"
    )


def _what(live: Object, selector: Mapping[str, str]) -> str:
    spec = live.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return f"stands for the name {spec.get('externalName')}"
    if not selector:
        return "has no selector"
    return f"finds other Pods ({','.join(f'{key}={value}' for key, value in sorted(selector.items()))})"

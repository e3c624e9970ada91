# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that only a VirtualMachinePool has: how it changes its machines, and which are deleted first. Pure.

Apart, for no other kind has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._client.errors import BadArgument
from . import manifest

PROACTIVE, UNMANAGED = "proactive", "unmanaged"
_OF_A_CHOICE = ("sort_policy", "label_selector", "node_selector_requirements")
"""Suboptions that say which machines come first, or come at all."""

Object = dict[str, Any]


def declared(pool: Object, params: Mapping[str, Any]) -> Object:
    """Return a declaration with these options laid over it."""
    for option, key, value in _values(params):
        if value is not None:
            pool = manifest.laid(pool, {"spec": {key: value}}, option)
    return pool


def _values(params: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    return [
        ("max_unavailable", "maxUnavailable", _share(params.get("max_unavailable"))),
        ("name_generation", "nameGeneration", _name_generation(params.get("name_generation"))),
        ("update_strategy", "updateStrategy", _strategy("update_strategy", params.get("update_strategy"))),
        ("scale_in_strategy", "scaleInStrategy", _strategy("scale_in_strategy", params.get("scale_in_strategy"))),
    ]


def _share(text: str | None) -> int | str | None:
    """Return a number as the API has it, or a percentage."""
    if text is None:
        return None
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdecimal()):
        raise BadArgument(f"max_unavailable is {text!r}: it is to be a number of machines, or a percentage such as 25%")
    return text if text.endswith("%") else int(text)


def _name_generation(given: Mapping[str, Any] | None) -> Object | None:
    if given is None:
        return None
    keys = {"config_maps": "appendIndexToConfigMapRefs", "secrets": "appendIndexToSecretRefs"}
    return {key: given[option] for option, key in keys.items() if given.get(option) is not None}


def _strategy(option: str, given: Mapping[str, Any] | None) -> Object | None:
    """Return a strategy as the API has it; the type that is named takes the place of any other."""
    if given is None:
        return None
    kind, inside = given["type"], {}
    chosen = [name for name in _OF_A_CHOICE if given.get(name) is not None]
    if chosen and kind != PROACTIVE:
        raise BadArgument(f"{option}: {chosen[0]} says which machines are chosen, and only type=proactive chooses any")
    if given.get("state_preservation") is not None:
        if kind == UNMANAGED:
            raise BadArgument(
                f"{option}: state_preservation is for machines that are deleted; with type=unmanaged none is"
            )
        inside["statePreservation"] = given["state_preservation"]
    if chosen:
        inside["selectionPolicy"] = _policy(given)
    return {kind: inside}


def _policy(given: Mapping[str, Any]) -> Object:
    policy: Object = {} if given.get("sort_policy") is None else {"sortPolicy": given["sort_policy"]}
    selectors = {
        key: given[option]
        for option, key in (
            ("label_selector", "labelSelector"),
            ("node_selector_requirements", "nodeSelectorRequirementMatcher"),
        )
        if given.get(option) is not None
    }
    return {**policy, "selectors": selectors} if selectors else policy

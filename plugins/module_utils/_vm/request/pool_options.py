# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of VirtualMachinePools only: how a pool updates its machines, and which it deletes first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._client.errors import BadArgument
from . import shape

PROACTIVE, UNMANAGED = "proactive", "unmanaged"
_SELECTION_OPTIONS = ("sort_policy", "label_selector", "node_selector_requirements")
"""Suboptions that choose machines, or their order."""

Object = dict[str, Any]


def with_options(pool: Object, params: Mapping[str, Any]) -> Object:
    """Return the declaration with these options merged into it."""
    for option, key, value in _values(params):
        if value is not None:
            pool = shape.lay(pool, {"spec": {key: value}}, option)
    return pool


def _values(params: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    return [
        ("max_unavailable", "maxUnavailable", _number_or_percentage(params.get("max_unavailable"))),
        ("name_generation", "nameGeneration", _name_generation(params.get("name_generation"))),
        ("update_strategy", "updateStrategy", _strategy("update_strategy", params.get("update_strategy"))),
        ("scale_in_strategy", "scaleInStrategy", _strategy("scale_in_strategy", params.get("scale_in_strategy"))),
    ]


def _number_or_percentage(text: str | None) -> int | str | None:
    if text is None:
        return None
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdecimal()):
        raise BadArgument(f"max_unavailable is {text!r}: it must be a number of machines, or a percentage such as 25%")
    return text if text.endswith("%") else int(text)


def _name_generation(options: Mapping[str, Any] | None) -> Object | None:
    if options is None:
        return None
    keys = {"config_maps": "appendIndexToConfigMapRefs", "secrets": "appendIndexToSecretRefs"}
    return {key: options[option] for option, key in keys.items() if options.get(option) is not None}


def _strategy(option: str, options: Mapping[str, Any] | None) -> Object | None:
    """Return a strategy in the form of the API."""
    if options is None:
        return None
    kind, body = options["type"], {}
    selection = [name for name in _SELECTION_OPTIONS if options.get(name) is not None]
    if selection and kind != PROACTIVE:
        raise BadArgument(f"{option}: {selection[0]} chooses machines, and only type=proactive chooses any")
    if options.get("state_preservation") is not None:
        if kind == UNMANAGED:
            raise BadArgument(
                f"{option}: state_preservation is for machines that are deleted; with type=unmanaged none is"
            )
        body["statePreservation"] = options["state_preservation"]
    if selection:
        body["selectionPolicy"] = _selection_policy(options)
    return {kind: body}


def _selection_policy(options: Mapping[str, Any]) -> Object:
    policy: Object = {} if options.get("sort_policy") is None else {"sortPolicy": options["sort_policy"]}
    selectors = {
        key: options[option]
        for option, key in (
            ("label_selector", "labelSelector"),
            ("node_selector_requirements", "nodeSelectorRequirementMatcher"),
        )
        if options.get(option) is not None
    }
    return {**policy, "selectors": selectors} if selectors else policy

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options whose value has the wrong shape (mapping, list, text), each named in an error. Pure.

Runs before Ansible's own check, which does not name the option or turns the value into a text. Values are not quoted:
they may be secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.validation import check_type_dict

_TEXTS = ("str", "path")
"""Option types that are texts."""


def misshapen(spec: Mapping[str, Any], params: Mapping[str, Any], where: str = "") -> str:
    """Return the problem of the first option with a wrong shape, or "".

    A text may contain a mapping in JSON. A mapping is no text: Ansible would convert it to Python's notation.
    """
    for name, option in spec.items():
        value = next(
            (params[key] for key in (name, *(option.get("aliases") or ())) if params.get(key) is not None), None
        )
        if value is not None and (wrong := _wrong(option, where + name, value)):
            return wrong
    return ""


def shape(value: Any) -> str:
    """Return the kind of a value in words, without the value."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, str):
        return "a text" if value else "an empty text"
    return "a list" if isinstance(value, list) else "true or false" if isinstance(value, bool) else "a number"


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, also one that is written in a text. Empty if Ansible will refuse it."""
    try:
        result: Mapping[str, Any] = check_type_dict(value)
    except TypeError:
        return {}
    return result


def _wrong(option: Mapping[str, Any], where: str, value: Any) -> str:
    kind, elements = option.get("type", "str"), option.get("elements")
    if kind == "dict":
        if not _may_be_mapping(value):
            return f"{where}: must be a mapping, not {shape(value)}"
        return misshapen(option.get("options") or {}, mapping(value), f"{where}.")
    if kind in _TEXTS and isinstance(value, (Mapping, list)):
        return f"{where}: must be a text, not {shape(value)}; {_remedy(where)}"
    if elements not in (*_TEXTS, "dict"):
        return ""
    items = value if isinstance(value, list) else [value]
    is_wrong = _is_no_text if elements in _TEXTS else lambda item: not _may_be_mapping(item)
    wrong = next((number for number, item in enumerate(items) if is_wrong(item)), None)
    if wrong is not None:
        kinds = "texts" if elements in _TEXTS else "mappings"
        return f"{where}: must be a list of {kinds}; item {wrong + 1} is {shape(items[wrong])}"
    inner = option.get("options") or {}
    problems = (misshapen(inner, mapping(item), f"{where}[{index}].") for index, item in enumerate(items) if inner)
    return next(filter(None, problems), "")


def _may_be_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, str) and ("{" in value or "=" in value))


def _is_no_text(value: Any) -> bool:
    return value is None or isinstance(value, (Mapping, list))


def _remedy(where: str) -> str:
    option = where.rpartition(".")[2]
    if option not in ("user_data", "network_data"):
        return "write one text, in quotation marks where it begins with { or ["
    begin = " after the line #cloud-config" if option == "user_data" else ""
    return f"write it as a block (|), or '| to_nice_yaml'{begin}; after a template that writes JSON '| string'"

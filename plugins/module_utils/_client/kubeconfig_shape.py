# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The type of each field of a kubeconfig, as kubectl reads it. Another type is refused with the field's name. Pure.

Nothing is converted: a number is not accepted as a text, and "false" in quotes is not accepted as a boolean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import BadArgument

TEXT, SWITCH, MAPPING = "a text", "true or false", "a mapping"
WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""How a template writes a boolean, for a kubeconfig that is a variable."""

_NAMED_VALUE = {"name": TEXT, "value": TEXT}
_EXEC = {"command": TEXT, "args": [TEXT], "env": [_NAMED_VALUE], "apiVersion": TEXT}
_CLUSTER = {
    "server": TEXT,
    "insecure-skip-tls-verify": SWITCH,
    "tls-server-name": TEXT,
    "proxy-url": TEXT,
    "certificate-authority": TEXT,
    "certificate-authority-data": TEXT,
}
_USER = {
    **dict.fromkeys(("token", "tokenFile", "username", "password", "as"), TEXT),
    **dict.fromkeys(("client-certificate", "client-certificate-data", "client-key", "client-key-data"), TEXT),
    "as-groups": [TEXT],
    "exec": _EXEC,
    "auth-provider": MAPPING,
}
SHAPE: dict[str, Any] = {
    "current-context": TEXT,
    "clusters": [{"name": TEXT, "cluster": _CLUSTER}],
    "contexts": [{"name": TEXT, "context": {"cluster": TEXT, "user": TEXT}}],
    "users": [{"name": TEXT, "user": _USER}],
}


def check(config: Mapping[str, Any], where: str, *, is_templated: bool) -> None:
    """Raise BadArgument for the first field of a wrong type. Fields that are not listed are not checked.

    where: the file, for the message. is_templated: booleans may be words, as templates write them.
    """
    _check(config, SHAPE, where, "", is_templated)


def is_on(value: Any) -> bool:
    """Return the value of a boolean that passed the check."""
    return WORDS[value.lower()] if isinstance(value, str) else bool(value)


def _check(value: Any, shape: Any, where: str, path: str, is_templated: bool) -> None:
    if value is None:
        return
    if isinstance(shape, dict):
        _refuse_unless(isinstance(value, Mapping), where, path, MAPPING)
        for key, inner in shape.items():
            _check(value.get(key), inner, where, f"{path}.{key}" if path else key, is_templated)
    elif isinstance(shape, list):
        _refuse_unless(isinstance(value, (list, tuple)), where, path, "a list")
        for index, item in enumerate(value):
            _refuse_unless(item is not None, where, f"{path}[{index}]", _kind_text(shape[0]))
            _check(item, shape[0], where, f"{path}[{index}]", is_templated)
    elif shape == TEXT:
        _refuse_unless(isinstance(value, str), where, path, "a text; put a number or a date in quotes")
    elif shape == SWITCH:
        is_word = is_templated and isinstance(value, str) and value.lower() in WORDS
        _refuse_unless(isinstance(value, bool) or is_word, where, path, "true or false, without quotes")
    else:
        _refuse_unless(isinstance(value, Mapping), where, path, shape)


def _kind_text(shape: Any) -> str:
    return shape if isinstance(shape, str) else MAPPING


def _refuse_unless(fits: bool, where: str, path: str, expected: str) -> None:
    if not fits:
        raise BadArgument(f"{where}: {path or 'the whole'} must be {expected}")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find and hide secrets: cloud-init, credentials. Works on all values from JSON or YAML."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from . import kubeconfig
from .shapes import mapping

MARK = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
CHANGED_MARK = f"{MARK} (changed)"

SHORTEST = 4
"""Characters. Hiding shorter secrets would also hide unrelated parts of a result."""

_SECRETS = frozenset(
    {
        "userdata", "userdatabase64", "networkdata", "networkdatabase64", "extraheaders",  # in a VM, and options
        "kubevirt.io/ignitiondata",  # an annotation
        "apikey", "password", "proxybasicauth", "basicauth",  # options
        "token", "clientkeydata", "idtoken", "refreshtoken", "accesstoken", "clientsecret",  # in a kubeconfig
    }
)  # fmt: skip
"""Names of fields and options, in the spelling of _plain."""
_OBJECTS = frozenset({"annotations", "cloudinitconfigdrive", "cloudinitnocloud", "volumes"})
"""Mappings, or lists of mappings, that contain secrets. A text in their place counts as secret as a whole."""
_ADDRESSES = ("proxy", "proxy-url", "host", "server")
"""Options and fields of a kubeconfig that are addresses, which may contain a password."""
_EXEC = dict.fromkeys(("apiVersion", "args", "command", "installHint", "interactiveMode", "provideClusterInfo"))
_PROVIDER = dict.fromkeys(("client-id", "extra-scopes", "idp-certificate-authority", "idp-issuer-url"))
_USERS_ENTRY = {
    "name": None,
    "user": {
        **dict.fromkeys(("as", "as-groups", "as-uid", "client-certificate", "client-certificate-data")),
        **dict.fromkeys(("client-key", "tokenFile", "username")),
        "auth-provider": {"name": None, "config": _PROVIDER},
        "exec": {**_EXEC, "env": [{"name": None}]},
    },
}
"""Fields of a kubeconfig's user that may be shown. Any other field may be a misspelt secret."""
_PASSWORD = re.compile(r"(?<=://)([^\s/?#@:]*:)([^\s/?#]+)(?=@)")
"""A password in an address, in any text, such as the source of a DataVolume. Ports and digests do not match."""
_SECRET_FLAG = re.compile(r"-.*(secret|token|password)$")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def secrets_in(value: Any) -> Iterator[str]:
    """Yield every secret text inside a value, also decoded if it is base64."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if _plain(key) in _SECRETS or _is_content(key, value):
                yield from _texts(inner)
            elif key == "exec" and isinstance(inner, dict):  # a kubeconfig's credential plugin
                yield from _environment(inner.get("env"))
                yield from _flags(inner.get("args"))
                yield from secrets_in(inner)
            elif key == _LAST_APPLIED:
                yield from secrets_in(_parsed(inner))
            elif key in _ADDRESSES and isinstance(inner, str):
                yield from _passwords(inner)
            else:
                yield from secrets_in(inner)
                if _plain(key) in _OBJECTS:
                    yield from _bare(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from secrets_in(inner)
    elif isinstance(value, str) and "://" in value:
        for _user, password in _PASSWORD.findall(value):
            yield from _spellings(password)


def secrets_in_arguments(arguments: Mapping[str, Any], spec: Mapping[str, Any]) -> set[str]:
    """Return the secrets in a module's arguments, which nothing has checked yet.

    spec: the module's options. An unknown option may be a misspelt secret, so all of its texts count as secrets. So do
    all texts of a value with the wrong shape, because its fields cannot be identified by name.
    """
    return {*secrets_in(arguments), *_misplaced(spec, arguments)}


def _misplaced(spec: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    options = {name: option for key, option in spec.items() for name in (key, *(option.get("aliases") or ()))}
    for name, value in values.items():
        if name not in options:
            if not str(name).startswith("_ansible"):
                yield from _texts(value)
        elif name == "kubeconfig":
            yield from _in_kubeconfig(value)
        else:
            yield from _in_option(options[name], value)


def _in_option(option: Mapping[str, Any], value: Any) -> Iterator[str]:
    kind = option.get("type", "str")
    if kind == "dict":
        yield from _in_object(option, value)
    elif kind != "list":
        yield from _texts(value) if _is_nested(value) else ()
    elif isinstance(value, str):  # Ansible makes a list of it
        for text in (value, *value.split(",")) if option.get("elements") == "dict" else ():
            yield from _in_object(option, text.strip())
    else:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if option.get("elements") == "dict":
                yield from _in_object(option, item)
            elif _is_nested(item):
                yield from _texts(item)


def _is_nested(value: Any) -> bool:
    """Tell whether a value is a mapping or list where the option takes a text or number."""
    return isinstance(value, (dict, list, tuple))


def _in_object(option: Mapping[str, Any], value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _texts(value)
        value = mapping(value)  # Ansible shows it in its parsed form
        yield from secrets_in(value)
    if isinstance(value, Mapping):
        yield from _misplaced(option["options"], value) if option.get("options") else ()
    else:
        yield from _texts(value)


def _in_kubeconfig(value: Any) -> Iterator[str]:
    """Yield the secrets of a kubeconfig: all of it that is not a path, a mapping or a harmless field of its users."""
    if isinstance(value, str):
        yield from _texts(value) if kubeconfig.is_inline(value) else ()
    elif not isinstance(value, Mapping):
        yield from _texts(value)
    else:
        users = value.get("users")
        yield from _texts_outside(users or [], [_USERS_ENTRY])


def _texts_outside(value: Any, harmless: Any) -> Iterator[str]:
    """Yield the texts of a value, except at the names in `harmless`, which has the shape of the value."""
    if harmless is None:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            yield from _texts(item) if _is_nested(item) else ()
    elif isinstance(harmless, list) and isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts_outside(item, harmless[0])
    elif isinstance(harmless, dict) and isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts_outside(inner, harmless[name]) if name in harmless else _texts(inner)
    else:
        yield from _texts(value)


def redacted(obj: Any, unlike: Any = None) -> Any:
    """Return a copy without secrets. Secrets that are not in `unlike` (the older version) are marked as changed."""
    return _redacted(obj, None if unlike is None else set(secrets_in(unlike)))


def _redacted(value: Any, old: set[str] | None) -> Any:
    if isinstance(value, list):
        return [_redacted(item, old) for item in value]
    if isinstance(value, str) and "://" in value:
        return _PASSWORD.sub(lambda match: match[1] + _mark(match[2], old), value)
    if not isinstance(value, dict):
        return value
    shown = {}
    for key, inner in value.items():
        if _plain(key) in _SECRETS and inner:
            shown[key] = _mark(inner, old)
        elif _is_content(key, value) and isinstance(inner, dict):
            shown[key] = {name: _mark(text, old) for name, text in inner.items()}
        elif key == _LAST_APPLIED:
            shown[key] = MARK  # kubectl's copy of the whole manifest
        else:
            shown[key] = _redacted(inner, old)
    return shown


def _environment(env: Any) -> Iterator[str]:
    """Yield the environment of a credential plugin: the values of a list of names and values, or of a wrong shape."""
    for variable in env if isinstance(env, list) else [env]:
        yield from _texts(variable.get("value") if isinstance(variable, dict) and "name" in variable else variable)


def _flags(args: Any) -> Iterator[str]:
    """Yield arguments of a credential plugin after a flag with a secret's name: --x-secret=a, --x-secret a."""
    words = [str(arg) for arg in args] if isinstance(args, list) else str(args or "").split()
    for word, following in zip(words, [*words[1:], ""], strict=False):
        flag, is_joined, value = word.partition("=")
        if _SECRET_FLAG.match(flag):
            yield from _texts(value if is_joined else following)


def _mark(secret: Any, old: set[str] | None) -> str:
    return CHANGED_MARK if old is not None and not old.issuperset(_texts(secret)) else MARK


def _is_content(key: str, obj: dict[str, Any]) -> bool:
    """Tell whether a key has the values of a Secret. Its metadata is not secret."""
    return key in ("data", "stringData") and obj.get("kind") == "Secret"


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):  # YAML reads a password of digits as a number
        value = str(value)
    if isinstance(value, str):
        if len(value) >= SHORTEST:
            yield value
            yield from _decoded(value)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _bare(value: Any) -> Iterator[str]:
    """Yield the texts outside of mappings."""
    if isinstance(value, str):
        yield from _texts(value)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _bare(inner)


def _plain(key: object) -> str:
    """Normalise a name, so that misspelt names match too: an error about an unknown name shows the value."""
    return str(key).lower().replace("_", "").replace("-", "")


def _passwords(address: str) -> Iterator[str]:
    before, _unused, _host = address.rpartition("@")
    yield from _spellings(before.rpartition("//")[2].partition(":")[2])


def _spellings(password: str) -> Iterator[str]:
    for text in (password, unquote(password)):
        if len(text) >= SHORTEST:
            yield text


def _decoded(text: str) -> Iterator[str]:
    try:
        plain = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    if len(plain) >= SHORTEST:
        yield plain

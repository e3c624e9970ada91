# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read kubeconfig files and inline kubeconfigs. exec_login.py runs credential plugins."""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
from collections.abc import Mapping
from typing import Any

from . import kubeconfig_shape
from .errors import BadArgument

SIZE_LIMIT = 1 << 20
"""Bytes; a kubeconfig of a thousand clusters is smaller."""
LISTS = ("clusters", "contexts", "users")


def is_inline(text: str) -> bool:
    """Tell whether a text is a kubeconfig in JSON or YAML, not the path of one."""
    return "\n" in text or ": " in text or text.lstrip().startswith("{")


def split(source: str) -> list[str]:
    """Return the paths of a kubeconfig option or variable. It may list several."""
    return [os.path.expanduser(path) for path in source.split(os.pathsep) if path]


def read(source: Any, context: str | None = None, *, persist: bool = False) -> dict[str, Any]:
    """Return the fields of an Endpoint for a context (None: the current one) of a path, several paths or a dict."""
    warnings: list[str] = []
    if isinstance(source, Mapping):
        config, where = dict(source), "kubeconfig"
        kubeconfig_shape.check(config, where, is_templated=True)
    elif isinstance(source, str) and is_inline(source):
        config, where = (
            _parse(source, "given as text"),
            "kubeconfig",
        )  # a dict that a template turned into text, or YAML
        kubeconfig_shape.check(config, where, is_templated=True)
    elif isinstance(source, str):
        config, where = _merged(split(source), warnings), source
    else:
        raise BadArgument("kubeconfig: neither a path nor a dictionary")
    name = context or config.get("current-context")
    if not name:
        raise BadArgument(f"{where} has no current-context; name one in the option context")
    chosen = _named(config, "contexts", "context", name, where)
    cluster = _named(config, "clusters", "cluster", chosen.get("cluster"), where)
    user = _named(config, "users", "user", chosen["user"], where) if chosen.get("user") else {}
    fields = {**_cluster(cluster, where), **_user(user, where)}
    if user.get("exec") or user.get("auth-provider"):
        from . import exec_login  # the kubernetes library costs 0.15 s and few need it

        path = source if isinstance(source, str) and where != "kubeconfig" else None
        fields.update(exec_login.credentials(config, path=path, context=name, persist=persist))
    return {"warnings": tuple(warnings), **fields}


def _merged(paths: list[str], warnings: list[str]) -> dict[str, Any]:
    """Merge files as kubectl does: the first file with an entry wins. Missing files are skipped; one must exist."""
    merged: dict[str, Any] = {}
    exists = False
    for path in paths:
        if not os.path.exists(path):
            continue
        exists = True
        config = _load(path, warnings)
        merged.setdefault("current-context", config.get("current-context"))
        merged["current-context"] = merged["current-context"] or config.get("current-context")
        for key in LISTS:
            merged[key] = [*merged.get(key, ()), *(config.get(key) or ())]
    if not exists:
        raise BadArgument(f"kubeconfig: no such file: {os.pathsep.join(paths)}")
    return merged


def _load(path: str, warnings: list[str]) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IROTH | stat.S_IWOTH):
                warnings.append(f"kubeconfig {path} is readable by everybody on this machine; chmod 600 it")
            text = file.read(SIZE_LIMIT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgument(f"cannot read kubeconfig {path}: {getattr(error, 'strerror', None) or error}") from error
    config = _parse(text, path)
    kubeconfig_shape.check(config, f"kubeconfig {path}", is_templated=False)
    base = os.path.dirname(os.path.abspath(path))
    for key, inner, names in (
        ("clusters", "cluster", ("certificate-authority",)),
        ("users", "user", ("client-certificate", "client-key", "tokenFile")),
    ):
        for entry in config.get(key) or ():
            inside = entry.get(inner) or {}
            inside.update({name: os.path.join(base, inside[name]) for name in names if inside.get(name)})
    return config


def _parse(text: str, where: str) -> dict[str, Any]:
    if len(text) > SIZE_LIMIT:
        raise BadArgument(f"kubeconfig {where} has more than {SIZE_LIMIT} bytes")
    try:
        config = json.loads(text) if text.lstrip().startswith("{") else _yaml(text)
    except ValueError as error:
        raise BadArgument(f"kubeconfig {where} is not valid: {error}") from error
    if not isinstance(config, dict):
        raise BadArgument(f"kubeconfig {where} is not a kubeconfig: a mapping is expected")
    return config


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise BadArgument("reading a kubeconfig needs PyYAML in the interpreter that runs the module") from error
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # the error's own text may quote a credential
        raise ValueError(f"line {mark.line + 1} is not YAML" if mark else "not YAML") from None


def _named(config: Mapping[str, Any], key: str, inner: str, name: str | None, where: str) -> dict[str, Any]:
    listed = [entry for entry in config.get(key) or () if isinstance(entry, dict)]
    for entry in listed:
        if entry.get("name") == name:
            return dict(entry.get(inner) or {})
    existing = ", ".join(str(entry.get("name")) for entry in listed[:10]) or "none"
    raise BadArgument(f"{where} has no {inner} {name!r}; it has: {existing}")


def _cluster(cluster: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        "server": str(cluster.get("server") or "").rstrip("/"),
        "verify": not kubeconfig_shape.is_on(cluster.get("insecure-skip-tls-verify")),
        "server_name": cluster.get("tls-server-name"),
        "proxy": cluster.get("proxy-url"),
        "ca_file": cluster.get("certificate-authority"),
        "ca_data": _decoded(cluster, "certificate-authority-data", where),
    }


def _user(user: Mapping[str, Any], where: str) -> dict[str, Any]:
    token = user.get("token")
    if user.get("tokenFile"):
        try:
            with open(user["tokenFile"], encoding="utf-8") as file:
                token = file.read().strip() or token
        except (OSError, ValueError) as error:  # also an invalid path, or a file that is not text
            if not token:  # as in kubectl, `token` is used while tokenFile does not exist
                reason = getattr(error, "strerror", None) or "it is no text"
                raise BadArgument(f"{where}: cannot read tokenFile {user['tokenFile']!r}: {reason}") from None
    return {
        "token": token,
        "username": user.get("username"),
        "password": user.get("password"),
        "cert_file": user.get("client-certificate"),
        "cert_data": _decoded(user, "client-certificate-data", where),
        "key_file": user.get("client-key"),
        "key_data": _decoded(user, "client-key-data", where),
        "headers": {"Impersonate-User": user["as"]} if user.get("as") else {},
        "groups": tuple(user.get("as-groups") or ()),
    }


def _decoded(section: Mapping[str, Any], key: str, where: str) -> str | None:
    if not section.get(key):
        return None
    try:
        return base64.b64decode(section[key], validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise BadArgument(f"{where}: {key} is not base64 of a PEM text") from error

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""URL paths and queries of the API. Every segment is encoded, so a name cannot change the rest of the path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from .errors import BadArgument

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_QUALIFIED_TEXT = "letters, digits, '-', '_' and '.', the first and the last a letter or digit, at most 63"


def check_name(option: str, value: object) -> None:
    """Raise BadArgument unless value is a DNS subdomain, like names of objects."""
    if not isinstance(value, str) or not _SUBDOMAIN.fullmatch(value):
        raise BadArgument(
            f"{option} {str(value)[:64]!r} is not a DNS subdomain: lower case letters, digits, '-' and '.', at most 253"
        )


def check_namespace(option: str, value: object) -> None:
    """Raise BadArgument unless value is a DNS label, like names of namespaces."""
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise BadArgument(
            f"{option} {str(value)[:64]!r} is not a DNS label: lower case letters, digits and '-', at most 63"
        )


def check_service_name(option: str, value: object) -> None:
    """Raise BadArgument unless value is a DNS label that begins with a letter, like names of Services."""
    if not isinstance(value, str) or not _LABEL.fullmatch(value) or value[0].isdigit():
        raise BadArgument(
            f"{option} {str(value)[:64]!r} is not a Service's name: lower case letters, digits and '-', at most 63, a"
            " letter first"
        )


def check_label(option: str, key: object, value: object) -> None:
    """Raise BadArgument unless key and value form a valid label."""
    prefix, slash, name = key.rpartition("/") if isinstance(key, str) else ("", "", "")
    if not _QUALIFIED.fullmatch(name) or (slash and not _SUBDOMAIN.fullmatch(prefix)):
        raise BadArgument(
            f"{option}: {str(key)[:64]!r} is not a label's key: {_QUALIFIED_TEXT}; before it may be a DNS subdomain"
            " and '/'"
        )
    if value is None:
        raise BadArgument(f"{option}[{key}] is empty; for a label without a value write ''")
    if not isinstance(value, str) or (value and not _QUALIFIED.fullmatch(value)):
        raise BadArgument(f"{option}[{key}] {str(value)[:64]!r} is not a label's value: {_QUALIFIED_TEXT}, or nothing")


def resource_path(
    api_version: str, plural: str, namespace: str | None = None, name: str | None = None, subresource: str | None = None
) -> str:
    """Return the path of a collection, an object (name given) or its subresource (/ separates segments)."""
    group, _unused, version = api_version.rpartition("/")
    parts = ["apis", group, version] if group else ["api", version]
    if namespace is not None:
        parts += ["namespaces", namespace]
    parts.append(plural)
    parts += [part for part in (name, *(subresource or "").split("/")) if part]
    return "/" + "/".join(quote(part, safe="") for part in parts)


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Append the query parameters that have a value; True is written as true."""
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}
    encoded = urlencode({key: value for key, value in texts.items() if value is not None})
    return f"{path}?{encoded}" if encoded else path

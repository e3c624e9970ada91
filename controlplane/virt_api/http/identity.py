# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who calls: a user, as told by a front proxy that proved itself; or an API server with a review. Pure; the handshake
is in tls.

The API server forwards requests for an aggregated API with the user's name, groups and extras in headers,
and shows a client certificate of the request-header CA. Without that certificate the headers are
anybody's claim. Everything that is not exactly as it should be is refused: no first value taken of two,
no malformed extra passed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controlplane.kube.access_review import User

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class UnauthenticatedError(Exception):
    """We do not know who calls (401). The text says why; it holds nothing that the caller sent."""


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """What kube-system/extension-apiserver-authentication says of the front proxy."""

    authority: bytes
    """PEM of the request-header CA."""
    allowed_names: frozenset[str] = frozenset()
    """Common names that may speak for users; empty means no one.

    The API server takes an empty list for anybody whom that CA signed, which on many clusters is whoever got any
    certificate of it.
    """
    user_headers: tuple[str, ...] = ("x-remote-user",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    uid_headers: tuple[str, ...] = ("x-remote-uid",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class HookClients:
    """Who may send reviews, where API servers are configured to prove themselves to webhooks."""

    authority: bytes
    """PEM of the CA that signs their certificates."""
    names: frozenset[str]
    """Common names; on many clusters that CA signs anybody's."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What we look at in a client certificate."""

    common_name: str
    begins: float
    ends: float
    is_for_clients: bool


def parse_front_proxy(data: Mapping[str, str]) -> FrontProxy | None:
    """Read the ConfigMap's data; None when it names no CA, or not in the way it should."""
    authority = data.get("requestheader-client-ca-file", "")
    try:
        lists = {
            name: _strings(data.get(f"requestheader-{name}", "[]"))
            for name in ("allowed-names", "username-headers", "group-headers", "uid-headers", "extra-headers-prefix")
        }
        x509.load_pem_x509_certificates(authority.encode("ascii"))
    except (ValueError, UnicodeEncodeError):
        return None

    def names(key: str, always: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys([always, *(name.lower() for name in lists[key])]))

    return FrontProxy(
        authority=authority.encode("ascii"),
        allowed_names=frozenset(lists["allowed-names"]),
        user_headers=names("username-headers", "x-remote-user"),
        group_headers=names("group-headers", "x-remote-group"),
        uid_headers=names("uid-headers", "x-remote-uid"),
        extra_prefixes=names("extra-headers-prefix", "x-remote-extra-"),
    )


def identify(
    proxy: FrontProxy | None, chain: Sequence[bytes], headers: Iterable[tuple[bytes, bytes]], now: float
) -> User:
    """Return who calls. chain: what the handshake has verified of the peer (DER), its own certificate first.

    Raises UnauthenticatedError.
    """
    if proxy is None:
        raise UnauthenticatedError("the cluster's front-proxy configuration is not known yet")
    if not chain:
        raise UnauthenticatedError("no client certificate of the front proxy")
    name = _proven_name(chain, proxy.authority, now)
    if not proxy.allowed_names:
        raise UnauthenticatedError(
            "the cluster names nobody who may speak for users: set the API server's --requestheader-allowed-names"
        )
    if name not in proxy.allowed_names:
        raise UnauthenticatedError("the client certificate's common name is not one that may speak for users")
    return _user(proxy, headers)


def check_reviewer(clients: HookClients | None, chain: Sequence[bytes], now: float) -> None:
    """Raise UnauthenticatedError unless the peer may send reviews; with nobody configured everybody may."""
    if clients is None:
        return
    if not chain:
        raise UnauthenticatedError("no client certificate: see the API server's --admission-control-config-file")
    if _proven_name(chain, clients.authority, now) not in clients.names:
        raise UnauthenticatedError("the client certificate's common name is not one that may send reviews")


def _user(proxy: FrontProxy, headers: Iterable[tuple[bytes, bytes]]) -> User:
    seen = [_decode(name, value) for name, value in headers]
    name = _only(seen, proxy.user_headers, "user name")
    if not name:
        raise UnauthenticatedError("no user name in the front proxy's headers")
    groups = tuple(value for header, value in seen if header in proxy.group_headers)
    if not groups or not all(groups):
        raise UnauthenticatedError("no groups, or an empty one, in the front proxy's headers")
    return User(name, groups, _extra(seen, proxy.extra_prefixes), _only(seen, proxy.uid_headers, "user UID"))


def _proven_name(chain: Sequence[bytes], authority: bytes, now: float) -> str:
    """Return the common name of a client that this CA vouches for.

    The handshake trusts all CAs that we know, each of which vouches for somebody else; the chain's end says which did.
    """
    facts = _facts(chain[0])
    if chain[-1] not in _certificates(authority):
        raise UnauthenticatedError("the client certificate is of another CA")
    if not facts.begins <= now < facts.ends:
        raise UnauthenticatedError("the client certificate is not valid at this time")
    if not facts.is_for_clients:
        raise UnauthenticatedError("the client certificate is not for client authentication")
    return facts.common_name


@lru_cache(maxsize=4)
def _certificates(bundle: bytes) -> frozenset[bytes]:
    return frozenset(one.public_bytes(Encoding.DER) for one in x509.load_pem_x509_certificates(bundle))


@lru_cache(maxsize=16)  # one front proxy per API server, asked on every request
def _facts(certificate: bytes) -> _Facts:
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        names = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        usages = parsed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])  # says nothing: not for clients
    except ValueError as error:
        raise UnauthenticatedError("the client certificate cannot be read") from error
    return _Facts(
        common_name=str(names[0].value) if len(names) == 1 else "",
        begins=parsed.not_valid_before_utc.timestamp(),
        ends=parsed.not_valid_after_utc.timestamp(),
        is_for_clients=ExtendedKeyUsageOID.CLIENT_AUTH in usages,
    )


def _decode(name: bytes, value: bytes) -> tuple[str, str]:
    lowered = name.decode("ascii", "replace").lower()
    if not lowered.startswith("x-") and b"remote" not in name.lower():
        return lowered, ""  # not ours to judge
    try:
        return lowered, value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnauthenticatedError("a header of the front proxy is not UTF-8") from error


def _only(seen: Iterable[tuple[str, str]], names: tuple[str, ...], what: str) -> str:
    values = [value for header, value in seen if header in names]
    if len(values) > 1:
        raise UnauthenticatedError(f"more than one {what} in the front proxy's headers")
    if values == [""]:
        raise UnauthenticatedError(f"an empty {what} in the front proxy's headers")
    return values[0] if values else ""


def _extra(seen: Iterable[tuple[str, str]], prefixes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in seen:
        prefix = next((prefix for prefix in prefixes if header.startswith(prefix)), None)
        if prefix is None:
            continue
        escaped = header[len(prefix) :]
        try:
            key = unquote(escaped, errors="strict").lower()
        except UnicodeDecodeError as error:
            raise UnauthenticatedError("a malformed extra in the front proxy's headers") from error
        if not key or _BAD_ESCAPE.search(escaped):
            raise UnauthenticatedError("a malformed extra in the front proxy's headers")
        extra[key] = (*extra.get(key, ()), value)
    return extra


def _strings(text: str) -> list[str]:
    value = json.loads(text)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("not a list of strings")
    return value

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who the caller is: a user, named by an authenticated front proxy; or an API server that sends a review. Pure.

The API server forwards requests for an aggregated API with the user's name, groups and extras in headers, and shows a
client certificate of the request-header CA. Without that certificate the headers prove nothing. Anything malformed is
refused: of two values none is chosen, and no malformed extra is passed on. The handshake is in tls.
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
    """The caller is not known (401). The text says why; it holds nothing that the caller sent."""


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The front proxy as kube-system/extension-apiserver-authentication describes it."""

    authority: bytes
    """PEM of the request-header CA."""
    allowed_names: frozenset[str] = frozenset()
    """Common names that may speak for users; empty means none.

    API servers take an empty list for every certificate of that CA, which on many clusters signs all client
    certificates.
    """
    user_headers: tuple[str, ...] = ("x-remote-user",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    uid_headers: tuple[str, ...] = ("x-remote-uid",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class WebhookClients:
    """The clients that may send reviews, where API servers are configured to authenticate to webhooks."""

    authority: bytes
    """PEM of the CA that signs their certificates."""
    names: frozenset[str]
    """Common names; on many clusters that CA signs other certificates, too."""


@dataclass(frozen=True, slots=True)
class _ClientCertificate:
    common_name: str
    begins: float
    ends: float
    is_for_clients: bool


def parse_front_proxy(data: Mapping[str, str]) -> FrontProxy | None:
    """Read the ConfigMap's data; None when it has no valid CA or malformed lists."""
    authority = data.get("requestheader-client-ca-file", "")
    try:
        lists = {
            name: _strings(data.get(f"requestheader-{name}", "[]"))
            for name in ("allowed-names", "username-headers", "group-headers", "uid-headers", "extra-headers-prefix")
        }
        x509.load_pem_x509_certificates(authority.encode("ascii"))
    except (ValueError, UnicodeEncodeError):
        return None

    def names(key: str, default: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys([default, *(name.lower() for name in lists[key])]))

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
    """Return the user. chain: the certificates (DER) that the handshake verified, the peer's own first.

    Raises UnauthenticatedError.
    """
    if proxy is None:
        raise UnauthenticatedError("the cluster's front-proxy configuration is not known yet")
    if not chain:
        raise UnauthenticatedError("no client certificate of the front proxy")
    name = _verified_name(chain, proxy.authority, now)
    if not proxy.allowed_names:
        raise UnauthenticatedError(
            "the cluster names no client that may speak for users: set the API server's --requestheader-allowed-names"
        )
    if name not in proxy.allowed_names:
        raise UnauthenticatedError("the client certificate's common name is not one that may speak for users")
    return _user(proxy, headers)


def check_webhook_client(clients: WebhookClients | None, chain: Sequence[bytes], now: float) -> None:
    """Raise UnauthenticatedError unless the peer may send reviews. clients: None lets every peer send them."""
    if clients is None:
        return
    if not chain:
        raise UnauthenticatedError("no client certificate: see the API server's --admission-control-config-file")
    if _verified_name(chain, clients.authority, now) not in clients.names:
        raise UnauthenticatedError("the client certificate's common name is not one that may send reviews")


def _user(proxy: FrontProxy, raw_headers: Iterable[tuple[bytes, bytes]]) -> User:
    headers = [_decode(name, value) for name, value in raw_headers]
    name = _single(headers, proxy.user_headers, "user name")
    if not name:
        raise UnauthenticatedError("no user name in the front proxy's headers")
    groups = tuple(value for header, value in headers if header in proxy.group_headers)
    if not groups or not all(groups):
        raise UnauthenticatedError("no groups, or an empty one, in the front proxy's headers")
    extra = _extra(headers, proxy.extra_prefixes)
    return User(name, groups, extra, _single(headers, proxy.uid_headers, "user UID"))


def _verified_name(chain: Sequence[bytes], authority: bytes, now: float) -> str:
    """Return the common name in a client certificate of this CA.

    The handshake trusts several CAs, each for another kind of client; the end of the chain tells which one it was.
    """
    certificate = _parse(chain[0])
    if chain[-1] not in _certificates(authority):
        raise UnauthenticatedError("the client certificate is of another CA")
    if not certificate.begins <= now < certificate.ends:
        raise UnauthenticatedError("the client certificate is not valid at this time")
    if not certificate.is_for_clients:
        raise UnauthenticatedError("the client certificate is not for client authentication")
    return certificate.common_name


@lru_cache(maxsize=4)
def _certificates(bundle: bytes) -> frozenset[bytes]:
    return frozenset(certificate.public_bytes(Encoding.DER) for certificate in x509.load_pem_x509_certificates(bundle))


@lru_cache(maxsize=16)  # one certificate per API server, needed on every request
def _parse(certificate: bytes) -> _ClientCertificate:
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        names = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        usages = parsed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])  # no usage is not a client's
    except ValueError as error:
        raise UnauthenticatedError("the client certificate cannot be read") from error
    return _ClientCertificate(
        common_name=str(names[0].value) if len(names) == 1 else "",
        begins=parsed.not_valid_before_utc.timestamp(),
        ends=parsed.not_valid_after_utc.timestamp(),
        is_for_clients=ExtendedKeyUsageOID.CLIENT_AUTH in usages,
    )


def _decode(name: bytes, value: bytes) -> tuple[str, str]:
    lowered = name.decode("ascii", "replace").lower()
    if not lowered.startswith("x-") and b"remote" not in name.lower():
        return lowered, ""  # not the front proxy's
    try:
        return lowered, value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnauthenticatedError("a header of the front proxy is not UTF-8") from error


def _single(headers: Iterable[tuple[str, str]], names: tuple[str, ...], what: str) -> str:
    values = [value for header, value in headers if header in names]
    if len(values) > 1:
        raise UnauthenticatedError(f"more than one {what} in the front proxy's headers")
    if values == [""]:
        raise UnauthenticatedError(f"an empty {what} in the front proxy's headers")
    return values[0] if values else ""


def _extra(headers: Iterable[tuple[str, str]], prefixes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers:
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

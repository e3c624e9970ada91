# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a module's connection options to one address with its credentials. No connection is made here.

The order is that of kubernetes.core: host with its own credentials, which needs no file; then kubeconfig and context;
then the Pod's service account; then the default kubeconfig. Options of the task override the result.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from .errors import BadArgument

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Endpoint(NamedTuple):
    """An API server and how to connect to it. `*_file` and `*_data` (PEM text) are alternatives; data wins."""

    server: str = ""
    verify: bool = True
    server_name: str | None = None
    """Name expected in the server's certificate, where it is not the host of the address."""
    ca_file: str | None = None
    ca_data: str | None = None
    cert_file: str | None = None
    cert_data: str | None = None
    key_file: str | None = None
    key_data: str | None = None
    token: str | None = None
    username: str | None = None
    password: str | None = None
    proxy: str | None = None
    no_proxy: str | None = None
    proxy_headers: Mapping[str, str] = MappingProxyType({})
    headers: Mapping[str, str] = MappingProxyType({})
    groups: tuple[str, ...] = ()
    """Groups to impersonate. This header may repeat, so it is not in `headers`."""
    user_agent: str = "virtops.kubevirt"
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Endpoint({self.server!r})"  # without credentials

    def secrets(self) -> list[str]:
        """Return all secrets, from options, environment and files."""
        return [text for text in (self.token, self.password, self.key_data, *self.proxy_headers.values()) if text]

    def authorization(self) -> str | None:
        """Return the Authorization header's value."""
        if self.token:
            return f"Bearer {self.token}"
        if self.username is not None:
            return "Basic " + base64.b64encode(f"{self.username}:{self.password or ''}".encode()).decode()
        return None


def resolve(params: Mapping[str, Any], environ: Mapping[str, str]) -> Endpoint:
    """Return the API server that options and environment name. Raises BadArgument if they name none."""
    explicit = _explicit(params)
    if not (params.get("host") and _has_credentials(params)):
        explicit = _overlay(_configured(params, environ), explicit)
    return _checked(explicit, params)


def _has_credentials(params: Mapping[str, Any]) -> bool:
    return bool(
        params.get("api_key")
        or (params.get("username") and params.get("password"))
        or (params.get("client_cert") and params.get("client_key"))
    )


def _configured(params: Mapping[str, Any], environ: Mapping[str, str]) -> Endpoint:
    if not (params.get("kubeconfig") or params.get("context")):
        inside = _in_cluster(environ)
        if inside is not None:
            return inside
    from . import kubeconfig  # only this path needs PyYAML

    source = params.get("kubeconfig")
    if not source:
        source = environ.get("KUBECONFIG") or os.path.join(environ.get("HOME", "~"), ".kube", "config")
        if params.get("host") and not any(map(os.path.exists, kubeconfig.split(source))):
            return Endpoint()
    return Endpoint(**kubeconfig.read(source, params.get("context"), persist=bool(params.get("persist_config"))))


def _in_cluster(environ: Mapping[str, str]) -> Endpoint | None:
    host = environ.get("KUBERNETES_SERVICE_HOST")
    token = os.path.join(SERVICE_ACCOUNT, "token")
    if not host or not os.path.exists(token):
        return None
    name = f"[{host}]" if ":" in host else host
    with open(token, encoding="utf-8") as file:
        return Endpoint(
            server=f"https://{name}:{environ.get('KUBERNETES_SERVICE_PORT', '443')}",
            ca_file=os.path.join(SERVICE_ACCOUNT, "ca.crt"),
            token=file.read().strip(),
        )


def _explicit(params: Mapping[str, Any]) -> Endpoint:
    headers = params.get("proxy_headers") or {}
    proxy_headers = {}
    if headers.get("proxy_basic_auth"):
        proxy_headers["Proxy-Authorization"] = "Basic " + _base64(headers["proxy_basic_auth"])
    if headers.get("basic_auth"):
        proxy_headers["Authorization"] = "Basic " + _base64(headers["basic_auth"])
    if headers.get("user_agent"):
        proxy_headers["User-Agent"] = headers["user_agent"]
    user = params.get("impersonate_user")
    verify = params.get("validate_certs")
    return Endpoint(
        server=(params.get("host") or "").rstrip("/"),
        verify=True if verify is None else verify,
        ca_file=params.get("ca_cert"),
        cert_file=params.get("client_cert"),
        key_file=params.get("client_key"),
        token=params.get("api_key"),
        username=params.get("username"),
        password=params.get("password"),
        proxy=params.get("proxy"),
        no_proxy=params.get("no_proxy"),
        proxy_headers=proxy_headers,
        headers={"Impersonate-User": user} if user else {},
        groups=tuple(params.get("impersonate_groups") or ()),
    )


def _proxy_user(address: str) -> dict[str, str]:
    from . import proxy  # few clusters need one

    user = proxy.user(proxy.parse(address))
    return {"Proxy-Authorization": "Basic " + _base64(user)} if user else {}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _overlay(configured: Endpoint, explicit: Endpoint) -> Endpoint:
    """Lay the task's options over the values of a file. An option replaces file and data of a credential."""
    options: dict[str, Any] = {
        name: getattr(explicit, name)
        for name in ("server", "ca_file", "cert_file", "key_file", "token", "username", "password", "proxy", "no_proxy")
        if getattr(explicit, name)
    }
    for name in ("ca", "cert", "key"):
        if f"{name}_file" in options:
            options[f"{name}_data"] = None
    if "username" in options and "token" not in options:
        options["token"] = None
    if not explicit.verify:
        options["verify"] = False
    return configured._replace(
        **options,
        proxy_headers={**configured.proxy_headers, **explicit.proxy_headers},
        headers={**configured.headers, **explicit.headers},
        groups=explicit.groups or configured.groups,
    )


def _parts(server: str) -> SplitResult:
    try:
        parts = urlsplit(server if "://" in server else f"https://{server}")
        is_usable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or address
        is_usable = False
    if not is_usable or parts.scheme not in ("http", "https") or parts.username or parts.query or parts.fragment:
        raise BadArgument("host: not an address like https://cluster.example.org:6443")
    return parts


def _check_header(name: str, value: str) -> None:
    if any(char in value for char in "\r\n\0"):
        raise BadArgument(f"{name}: a header value may not contain line breaks")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError as error:
        raise BadArgument(
            f"{name}: character {error.start + 1} cannot be sent in a header; is it the right text?"
        ) from None


def _checked(endpoint: Endpoint, params: Mapping[str, Any]) -> Endpoint:
    if params.get("validate_certs") is True:
        endpoint = endpoint._replace(verify=True)
    if not endpoint.server:
        raise BadArgument("no cluster is named: give host, or kubeconfig, or context, or set K8S_AUTH_KUBECONFIG")
    parts = _parts(endpoint.server)
    headers = (
        ("api_key", endpoint.token),
        *endpoint.headers.items(),
        *(("groups", group) for group in endpoint.groups),
    )
    for name, value in headers:
        _check_header("impersonate_user" if name == "Impersonate-User" else name, value or "")
    if endpoint.proxy:
        endpoint = endpoint._replace(proxy_headers={**_proxy_user(endpoint.proxy), **endpoint.proxy_headers})
    warnings = list(endpoint.warnings)
    if parts.scheme == "http":
        if parts.hostname not in LOOPBACK:
            if endpoint.authorization():
                raise BadArgument("host: credentials are not sent over plain http; use an https address")
            warnings.append(f"{parts.hostname}: plain http, anyone on the way can read and change what is sent")
    elif not endpoint.verify:
        warnings.append("validate_certs is false: the API server's identity is not checked")
        if params.get("ca_cert"):
            warnings.append("ca_cert is ignored because validate_certs is false")
    return endpoint._replace(server=parts.geturl().rstrip("/"), warnings=tuple(warnings))

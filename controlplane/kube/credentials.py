# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's address and this process's identity. Requests are made in client.py.

In a Pod: a token file that the kubelet renews, a CA file and two environment variables. A kubeconfig (exec plug-ins,
OIDC, ...) is read by kubernetes.aio, which is imported only then: it needs requests and oauthlib, 22 MiB and 0.2 s that
a process in a cluster should not pay.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# The kubelet renews a token at 80 % of its life (an hour or more); client-go reads it again after a minute.
TOKEN_SECONDS = 60.0


class CredentialsError(Exception):
    """The API server's address or the credentials are missing. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to reach one API server."""

    server: str
    """Base URL without a trailing slash."""
    tls: ssl.SSLContext | None
    """None for plain HTTP (a fake in tests)."""
    authorization: Callable[[bool], Awaitable[str | None]]
    """Return the Authorization header's value; called with True after a 401."""
    reload_trust: Callable[[], None] = lambda: None
    """Read the CA file again; called when the server's certificate is not trusted."""


async def load(environment: Mapping[str, str], monotonic: Callable[[], float]) -> Credentials:
    """Use KUBECONFIG when it is set (development, tests), else the Pod's service account."""
    path = environment.get("KUBECONFIG", "")
    if path:
        return await from_kubeconfig(Path(path))
    return in_cluster(environment, monotonic)


def anonymous(server: str) -> Credentials:
    """Return credentials for a plain HTTP server without authentication."""

    async def none(_unused: bool) -> None:
        return None

    return Credentials(server.rstrip("/"), None, none)


def in_cluster(
    environment: Mapping[str, str], monotonic: Callable[[], float], directory: Path = SERVICE_ACCOUNT
) -> Credentials:
    """Use the Pod's service account. Raises CredentialsError outside a Pod or without a mounted token."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise CredentialsError(
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: run this in a Pod, or set KUBECONFIG"
        )
    token, authority = _TokenFile(directory / "token", monotonic), directory / "ca.crt"
    try:
        context = _client_context(authority)
        token.read()
    except OSError as error:
        raise CredentialsError(
            f"cannot read {error.filename or authority}: {error.strerror or error}; "
            "give the Pod a serviceAccountName and leave automountServiceAccountToken on"
        ) from error
    return Credentials(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        tls=context,
        authorization=token.authorization,
        reload_trust=lambda: context.load_verify_locations(authority),
    )


async def from_kubeconfig(path: Path) -> Credentials:
    """Read a kubeconfig with the Kubernetes client, for kubectl's rules."""
    from kubernetes.aio import config  # noqa: PLC0415  -- see the module's docstring
    from kubernetes.aio.client.configuration import Configuration  # noqa: PLC0415

    settings = Configuration()
    try:
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(path), client_configuration=settings, persist_config=False
        )
    except (config.ConfigException, OSError) as error:
        raise CredentialsError(f"cannot use the kubeconfig {path}: {error}") from error

    context: ssl.SSLContext | None = None
    if settings.host.startswith("https:"):
        context = _client_context(Path(settings.ssl_ca_cert) if settings.ssl_ca_cert else None)
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
        if not settings.verify_ssl:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def authorization(_unused: bool) -> str | None:
        value: str | None = await settings.get_api_key_with_prefix("BearerToken")
        return value

    return Credentials(settings.host.rstrip("/"), context, authorization)


def _client_context(authority: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class _TokenFile:
    """A projected service-account token: read again once a minute, and after a 401."""

    def __init__(self, path: Path, monotonic: Callable[[], float]) -> None:
        self._path = path
        self._monotonic = monotonic
        self._value = ""
        self._read_at = 0.0

    def read(self) -> None:
        self._value = self._path.read_text("ascii").strip()
        self._read_at = self._monotonic()

    async def authorization(self, refused: bool) -> str:
        if refused or self._monotonic() - self._read_at >= TOKEN_SECONDS:
            try:
                self.read()
            except OSError:
                # The kubelet is just swapping a symlink; the old token is valid for minutes.
                self._read_at = self._monotonic()
        return f"Bearer {self._value}"

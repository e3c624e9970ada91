# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection failures as errors for the user."""

from __future__ import annotations

import http.client
import socket
import ssl

from .errors import Silent, Unavailable, cut

_NOT_KNOWN = "give the cluster's CA in ca_cert"
_NOT_NOW = "have the cluster's certificates renewed, or set the clock of the host on which this runs"
_ANOTHER = "give an address of the server that its certificate names"
_REMEDIES = {9: _NOT_NOW, 10: _NOT_NOW, 62: _ANOTHER, 64: _ANOTHER}
"""Remedies by OpenSSL's code (X509_V_ERR): a certificate that is not valid now, or is for another name or address."""


def unexpected(server: str, response: http.client.HTTPResponse) -> Unavailable:
    """Return the error for a response that no API server sends."""
    if 300 <= response.status < 400:
        return Unavailable(
            f"unexpected response from {server}: a redirect ({response.status}) to"
            f" {cut(response.getheader('Location', '?'), 100)}, which is not followed; give the final address"
        )
    return Unavailable(
        f"unexpected response from {server}: status {response.status}, content type"
        f" {cut(response.getheader('Content-Type', ''), 60) or 'none'}; {_meaning(response.status)}"
    )


def _meaning(status: int) -> str:
    """Return the usual meaning of a status from something else than an API server."""
    if status in (401, 403, 407):
        return "something before the API server refuses these credentials, or this is not the address of one"
    if status in (502, 503, 504):
        return "something before the API server does not reach it; try again, and look at the load balancer or proxy"
    return "is this the address of a Kubernetes API server?"


def unavailable(
    server: str, proxy: tuple[str, int] | None, error: Exception, *, is_reached: bool = False
) -> Unavailable:
    """Return the error for a missing response. is_reached: there is a connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = _REMEDIES.get(error.verify_code, _NOT_KNOWN)
        return Unavailable(f"the certificate of {server} is not trusted: {error.verify_message}; {remedy}")
    route = f" through the proxy {proxy[0]}:{proxy[1]}" if proxy else ""
    check = "check proxy, host and kubeconfig" if proxy else "check host and kubeconfig"
    if isinstance(error, TimeoutError):
        kind = Silent if is_reached else Unavailable
        return kind(f"{server} does not respond{route}; {check}, and the network between")
    if isinstance(error, socket.gaierror):
        host = f"proxy {proxy[0]}" if proxy else f"host of {server}"
        return Unavailable(f"the {host} is not known: {error.strerror}; {check}")
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Unavailable(f"cannot talk to {server}{route}: {cut(text, 200)}; {check}")

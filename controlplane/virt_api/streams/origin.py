# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which web pages may open a stream. Pure.

A browser sends a page's origin. `kubectl proxy` adds its user's credentials to any request, and a browser itself a
client certificate, so a page from elsewhere must not open a console through them. Programs send no origin.

The API server does not tell under which name it was reached. Firefox tells whether page and stream have the same
origin; for other browsers the names are a setting.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from controlplane.api.objects.console_origins import is_origin, normalize

SAME_ORIGIN = "same-origin"
"""Value of Sec-Fetch-Site. A page cannot set this header; a browser sends it to trustworthy addresses only."""


def is_allowed_origin(
    origin: str | None, hosts: Iterable[str], allowed: Collection[str] = (), fetch_site: str | None = None
) -> bool:
    """Tell whether a page of this origin may open a stream: none, this host's, a loopback address's, or a listed one.

    hosts: names under which the client reached this server, with or without a port. allowed: the listed origins.
    fetch_site: the request's Sec-Fetch-Site.
    """
    if origin is None or fetch_site == SAME_ORIGIN:
        return True
    if not is_origin(origin):
        return False
    page = urlsplit(origin)
    is_this_host = page.netloc.lower() in {host.lower() for host in hosts if host}
    return is_this_host or _is_loopback(page.hostname or "") or normalize(origin) in allowed


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

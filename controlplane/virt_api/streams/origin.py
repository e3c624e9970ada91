# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which web pages may open a stream. Pure.

A browser sends a page's origin. `kubectl proxy` adds its user's credentials to any request, so a page from elsewhere
must not open a console through it. Programs send no origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit


def is_allowed_origin(origin: str | None, hosts: Iterable[str]) -> bool:
    """Tell whether a page of this origin may open a stream: none, this host's, or one of `hosts`.

    hosts: names under which the client reached the API server, with or without a port.
    """
    if origin is None:
        return True
    try:
        page = urlsplit(origin)
        if page.scheme not in ("http", "https") or not page.hostname:
            return False
        return _is_loopback(page.hostname) or page.netloc.lower() in {host.lower() for host in hosts if host}
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

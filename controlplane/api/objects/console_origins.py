# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Origins of web pages, as in the setting that lists those that may open streams: pure."""

from __future__ import annotations

from urllib.parse import urlsplit

MOST_ORIGINS, LONGEST_ORIGIN = 16, 300
_DEFAULT_PORTS = {"http": 80, "https": 443}


def parse_origins(text: str) -> frozenset[str]:
    """Return the origins of a list, separated by spaces. ValueError says what it must be."""
    origins = text.split()
    if len(origins) > MOST_ORIGINS or not all(
        len(origin) <= LONGEST_ORIGIN and is_origin(origin) for origin in origins
    ):
        raise ValueError(
            f"must be at most {MOST_ORIGINS} addresses without a path, separated by spaces, e.g. https://api.example.com:6443"
        )
    return frozenset(map(normalize, origins))


def is_origin(text: str) -> bool:
    """Tell whether a text is scheme, host and perhaps a port of a web page, and nothing else."""
    try:
        page = urlsplit(text)
        has_port = page.port is None or page.port > 0
    except ValueError:
        return False
    return page.scheme in _DEFAULT_PORTS and bool(page.hostname) and has_port and _is_bare(text)


def normalize(origin: str) -> str:
    """Return an origin as browsers send it: in lower case, without its scheme's port."""
    page = urlsplit(origin.lower())
    netloc = page.netloc.removesuffix(f":{_DEFAULT_PORTS[page.scheme]}").removesuffix(":")
    return f"{page.scheme}://{netloc}"


def _is_bare(text: str) -> bool:
    netloc = text.partition("://")[2]
    return netloc.isascii() and netloc.isprintable() and not set(netloc) & set("/?#@\\ ")

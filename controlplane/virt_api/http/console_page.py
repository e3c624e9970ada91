# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page: static files for browsers, from a table that is read once at start.

A request's path is a key of that table and never opens a file. The page has no rights of its own: what it does, it asks
of the API server as the user who opened it.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from controlplane.virt_api.http.response import Response, failure
from controlplane.virt_api.http.routes import PageRoute

DIRECTORY = Path(__file__).parent.parent / "page"
"""The page's own files, and below it NAME/package/ of each library."""
INDEX = "index.html"
HTML = "text/html"
TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".html": HTML,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
    }
)
"""Content types by suffix; files of other kinds are not served."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",  # page/inline_styles.js: xterm.js makes style elements and style attributes
        "img-src 'self' data: blob:",
        "connect-src 'self'",  # WebSockets to the same host included
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'; trusted-types 'none'",  # no text becomes HTML
    )
)
_REDIRECTION = b"""<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=console/">
<link rel="icon" href="console/icon.svg">
<title>Virtual machines</title>
<a href="console/">Virtual machines</a>
"""
"""Instead of a redirection, which the API server does not pass on. Relative: a proxy may serve the API below a path."""
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",  # kept, and validated by its ETag
        "Vary": "Accept-Encoding",
    }
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is served."""

    content_type: str
    body: bytes
    compressed: bytes | None
    """The body by gzip. None of HTML: the API server parses it on the way, and fails at the empty body of a HEAD."""
    etag: str


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """Answers requests for the page."""

    files: Mapping[str, PageFile]
    """By path below the page's address; "" is the page itself."""

    def answer(self, route: PageRoute, if_none_match: str = "", accept_encoding: str = "") -> Response:
        """Answer a request. The texts are the request's headers of these names."""
        if route.path is None:
            return Response(200, _REDIRECTION, HTML, HEADERS, charset="utf-8")
        file = self.files.get(route.path)
        if file is None:
            return failure(404, f"the console page has no file {route.path[:64]!r}")
        headers = {**HEADERS, "ETag": file.etag}
        if file.etag in {tag.strip() for tag in if_none_match.split(",")}:
            return Response(304, b"", file.content_type, headers, charset="utf-8")
        body = file.body
        if file.compressed is not None and _accepts_gzip(accept_encoding):
            body, headers["Content-Encoding"] = file.compressed, "gzip"
        return Response(200, body, file.content_type, headers, charset="utf-8")


@cache
def read_page(directory: Path = DIRECTORY) -> ConsolePage:
    """Read all files of the page into memory, about 1.2 MB."""
    paths = sorted(path for path in directory.rglob("*") if path.suffix in TYPES and path.is_file())
    files = {path.relative_to(directory).as_posix(): _read_file(path) for path in paths}
    return ConsolePage({**files, "": files[INDEX]})


def _read_file(path: Path) -> PageFile:
    body, content_type = path.read_bytes(), TYPES[path.suffix]
    etag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'  # weak: the same for both encodings
    return PageFile(content_type, body, None if content_type == HTML else gzip.compress(body, 6, mtime=0), etag)


def _accepts_gzip(accept_encoding: str) -> bool:
    codings = (coding.replace(" ", "").lower() for coding in accept_encoding.split(","))
    return any(coding.partition(";")[0] == "gzip" and not coding.endswith(";q=0") for coding in codings)

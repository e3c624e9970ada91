# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page: which files are served, and with which headers."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from controlplane.virt_api.http.console_page import DIRECTORY, TYPES, ConsolePage, read_page
from controlplane.virt_api.http.routes import PageRoute


@pytest.fixture(scope="module")
def page() -> ConsolePage:
    return read_page()


def test_each_file_is_served_with_its_type(page: ConsolePage) -> None:
    paths = [path for path in page.files if path]
    for path in paths:
        response = page.answer(PageRoute(path))
        assert (response.code, response.charset) == (200, "utf-8"), path
        assert response.content_type == TYPES[Path(path).suffix], path
        assert response.body == (DIRECTORY / path).read_bytes(), path
    assert {"index.html", "novnc/package/core/rfb.js", "xterm/package/css/xterm.css"} <= set(paths)


def test_the_address_of_the_page_is_its_index(page: ConsolePage) -> None:
    assert page.answer(PageRoute("")) == page.answer(PageRoute("index.html"))


def test_without_its_last_slash_the_address_leads_to_the_page_below_any_prefix(page: ConsolePage) -> None:
    """By HTML: the API server turns a backend's redirection into 502."""
    response = page.answer(PageRoute(None))
    assert (response.code, response.content_type) == (200, "text/html")
    assert b'content="0; url=console/"' in response.body


@pytest.mark.parametrize(
    "path",
    [
        "missing.js",
        "libraries.json",
        "../server.py",
        "novnc",
        "novnc/package/LICENSE.txt",
        "novnc/package/core/",
        "novnc/package/core/./rfb.js",
        "novnc%2fpackage/core/rfb.js",
        "/etc/passwd",
        "index.html/",
    ],
)
def test_other_paths_are_unknown(page: ConsolePage, path: str) -> None:
    assert page.answer(PageRoute(path)).code == 404


def test_a_page_from_elsewhere_can_neither_run_code_in_it_nor_frame_it(page: ConsolePage) -> None:
    headers = page.answer(PageRoute("")).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
    assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_page_itself_has_no_inline_code_and_names_no_other_host(page: ConsolePage) -> None:
    text = page.files[""].body.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=|(?:src|href)=[\"'](?:https?:)?//", text) == []


@pytest.mark.parametrize(
    ("if_none_match", "code"),
    [("{etag}", 304), ('"other", {etag}', 304), ('"other"', 200), ("", 200)],
)
def test_a_browser_that_has_the_file_does_not_get_it_again(page: ConsolePage, if_none_match: str, code: int) -> None:
    etag = page.answer(PageRoute("")).headers["ETag"]
    response = page.answer(PageRoute(""), if_none_match.format(etag=etag))
    assert (response.code, response.headers["ETag"]) == (code, etag)
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.content_type == "text/html"  # a browser may keep the type of a 304
    assert (response.body == b"") == (code == 304)


@pytest.mark.parametrize(
    ("accept", "is_compressed"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("GZIP", True), ("", False), ("br", False), ("gzip;q=0", False)],
)
def test_a_body_is_compressed_for_those_who_accept_it(page: ConsolePage, accept: str, is_compressed: bool) -> None:
    response = page.answer(PageRoute("xterm/package/lib/xterm.mjs"), accept_encoding=accept)
    assert (response.headers.get("Content-Encoding") == "gzip") is is_compressed
    body = gzip.decompress(response.body) if is_compressed else response.body
    assert body == (DIRECTORY / "xterm/package/lib/xterm.mjs").read_bytes()
    assert response.headers["Vary"] == "Accept-Encoding"


def test_html_is_not_compressed(page: ConsolePage) -> None:
    """The API server's proxy parses it, and fails at a HEAD of a compressed one."""
    assert "Content-Encoding" not in page.answer(PageRoute(""), accept_encoding="gzip").headers


def test_one_rule_of_rbac_covers_every_address(page: ConsolePage) -> None:
    """The API server takes the first two segments as name and subresource."""
    resources = {"/".join(["console", *path.split("/")[1:2]]) for path in page.files}
    assert resources == {"console", "console/package"}


def test_modules_import_each_other_by_relative_paths_that_are_served(page: ConsolePage) -> None:
    """Other imports would need an import map, which is inline code."""
    for path, file in page.files.items():
        if file.content_type != "text/javascript":
            continue
        for found in re.findall(r"^import\b[^'\";]*?['\"]([^'\"]+)['\"]", file.body.decode(), re.MULTILINE):
            assert found.startswith(("./", "../")), path
            target = (Path("/") / path).parent / found
            assert str(target.resolve().relative_to("/")) in page.files, (path, found)


def test_each_library_has_its_licence() -> None:
    for library in json.loads((DIRECTORY / "libraries.json").read_text()):
        root = DIRECTORY / library["directory"] / "package"
        assert list(root.glob("LICENSE*")), library["package"]

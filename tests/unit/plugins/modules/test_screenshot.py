# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubevirt_screenshot as Ansible runs it, against an HTTP server in the API server's place."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ansible_collections.virtops.kubevirt.tests.unit.plugins.modules.test_modules import run

from tests.support import http_server

PATH = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web/vnc/screenshot"
INSTANCE = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/web"


def a_png(width: int = 720, height: int = 400, rest: bytes = b"pixels") -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + rest


class Server:
    """A machine with a screen."""

    def __init__(self) -> None:
        self.show(a_png())
        self.accepted: list[str] = []
        self.phase: str | None = "Running"
        """Of the instance; None if there is none."""

    def show(self, body: bytes, content_type: str = "image/png", status: int = 200) -> None:
        self.body, self.content_type, self.status = body, content_type, status

    async def screenshot(self, request: web.Request) -> web.Response:
        self.accepted.append(request.headers["Accept"])
        return web.Response(body=self.body, content_type=self.content_type, status=self.status)

    async def read(self, _request: web.Request) -> web.Response:
        named = {"name": "web", "namespace": "default", "uid": "u"}
        if self.phase is None:
            return web.json_response({"kind": "Status", "code": 404, "details": named}, status=404)
        kind = {"kind": "VirtualMachineInstance", "apiVersion": "kubevirt.io/v1"}
        return web.json_response({**kind, "metadata": named, "status": {"phase": self.phase}})


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    with http_server.serving({PATH: server.screenshot, INSTANCE: server.read}) as url:
        yield url


def take(url: str, dest: Path, **arguments: Any) -> dict[str, Any]:
    result, _output = run("kubevirt_screenshot", host=url, name="web", namespace="default", dest=str(dest), **arguments)
    return result


def test_a_picture_is_written_with_its_mode_and_described(server: Server, url: str, tmp_path: Path) -> None:
    dest = tmp_path / "web.png"

    result = take(url, dest, mode="0600")

    assert result["changed"] is True
    described = {name: result[name] for name in ("path", "width", "height", "size")}
    assert described == {"path": str(dest), "width": 720, "height": 400, "size": len(a_png())}
    assert (dest.read_bytes(), dest.stat().st_mode & 0o777) == (a_png(), 0o600)
    assert server.accepted == ["image/png, application/json, */*"]
    assert [path.name for path in tmp_path.iterdir()] == ["web.png"]


def test_the_same_screen_changes_nothing_and_another_one_does(server: Server, url: str, tmp_path: Path) -> None:
    dest = tmp_path / "web.png"
    assert take(url, dest, mode="0600")["changed"] is True
    assert take(url, dest)["changed"] is False
    assert take(url, dest, mode="0640")["changed"] is True
    server.show(a_png(rest=b"pixelz"))
    assert take(url, dest)["changed"] is True
    assert (dest.read_bytes(), dest.stat().st_mode & 0o777) == (a_png(rest=b"pixelz"), 0o640)


def test_check_mode_says_whether_the_file_would_change_and_writes_nothing(
    server: Server, url: str, tmp_path: Path
) -> None:
    dest = tmp_path / "web.png"
    would = take(url, dest, mode="0600", _ansible_check_mode=True)
    assert (would["changed"], would["width"], dest.exists()) == (True, 720, False)
    dest.write_bytes(a_png())
    dest.chmod(0o644)
    assert take(url, dest, _ansible_check_mode=True)["changed"] is False
    assert take(url, dest, mode="0600", _ansible_check_mode=True)["changed"] is True
    server.show(a_png(rest=b"other"))
    assert take(url, dest, _ansible_check_mode=True)["changed"] is True
    assert (dest.read_bytes(), dest.stat().st_mode & 0o777) == (a_png(), 0o644)


def test_a_content_type_that_the_server_does_not_keep_does_not_matter(server: Server, url: str, tmp_path: Path) -> None:
    server.show(a_png(), "application/octet-stream")
    assert take(url, tmp_path / "web.png")["changed"] is True


@pytest.mark.parametrize(
    ("body", "content_type", "status", "text"),
    [
        (b"cannot take a screenshot: VMI is not running\n", "text/plain", 500, "VMI is not running"),
        (b'{"kind": "Status", "code": 403, "message": "no"}', "application/json", 403, "no"),
        (b"<html>", "text/html", 200, "6 bytes that are no PNG"),
        (a_png()[:20], "image/png", 200, "20 bytes that are no PNG"),
        (b"", "image/png", 200, "0 bytes that are no PNG"),
    ],
    ids=["not running", "forbidden", "no picture", "cut", "empty"],
)
def test_a_failure_writes_nothing(
    server: Server, url: str, tmp_path: Path, body: bytes, content_type: str, status: int, text: str
) -> None:
    server.show(body, content_type, status)

    result = take(url, tmp_path / "web.png")

    assert result["failed"] is True
    assert "VirtualMachineInstance default/web" in result["msg"]
    assert text in result["msg"]
    assert list(tmp_path.iterdir()) == []


SERVERS_PREFIX = "cannot take a screenshot of virtualmachineinstance default/web: "
START = "start it (kubevirt_vm with state=started), and wait until it runs (wait=true)"


@pytest.mark.parametrize(
    ("phase", "message", "status"),
    [
        (None, f"cannot take a screenshot of {{}}: it does not exist, or is stopped; {START}", 404),
        (
            "Scheduling",
            f"cannot take a screenshot of {{}}: it is not running (yet): its phase is Scheduling; {START}",
            500,
        ),
        ("Running", "cannot read vnc/screenshot of {}: its virt-handler gives no reason", 500),
    ],
)
def test_a_refusal_names_the_machine_once_and_says_what_to_do(
    server: Server, url: str, tmp_path: Path, phase: str | None, message: str, status: int
) -> None:
    """Every failure is a 500 of plain text, as upstream."""
    server.phase = phase
    server.show(f"{SERVERS_PREFIX}its virt-handler gives no reason\n".encode(), "text/plain", 500)

    result = take(url, tmp_path / "web.png")

    assert result["msg"] == message.format("VirtualMachineInstance default/web")
    assert result["status"] == status


@pytest.mark.parametrize(("dest", "text"), [("", "is a folder"), ("absent/web.png", "there is no folder")])
def test_a_destination_that_can_be_no_file_is_refused(url: str, tmp_path: Path, dest: str, text: str) -> None:
    result = take(url, tmp_path / dest)
    assert (result["failed"], text in result["msg"]) == (True, True)


@pytest.mark.parametrize(("mode", "former"), [("0600", None), ("u=rw,go=", None), ("0600", 0o644)])
def test_nobody_else_can_open_the_file_before_it_has_its_mode(
    url: str, tmp_path: Path, mode: str, former: int | None
) -> None:
    """Whoever has opened a file reads it, whatever mode it gets later."""
    dest = tmp_path / "web.png"
    if former is not None:
        dest.touch(former)
    looked = tmp_path / "looked"
    (tmp_path / "sitecustomize.py").write_text(LOOK.format(dest=str(dest), looked=str(looked)))
    result, _output = run(
        "kubevirt_screenshot", environment={"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        host=url, name="web", namespace="default", dest=str(dest), mode=mode,
    )  # fmt: skip
    assert result["changed"] is True
    assert dest.stat().st_mode & 0o777 == 0o600
    assert set(looked.read_text().split()) == {"0o600"}


LOOK = """
import os, stat, sys
rename, chmod = os.rename, os.chmod
def look():
    with open({looked!r}, "a") as file:
        file.write(oct(stat.S_IMODE(os.stat({dest!r}).st_mode)) + "\\n")
def looking(call):
    def called(*arguments, **options):
        call(*arguments, **options)
        if any(os.fsdecode(text) == {dest!r} for text in arguments if isinstance(text, (str, bytes))):
            look()
    return called
os.rename, os.chmod = looking(rename), looking(chmod)
"""

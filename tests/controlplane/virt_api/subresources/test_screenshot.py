# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vnc/screenshot, from a user's request to a node's virt-handler and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.domain.screenshot import PNG_LIMIT_BYTES, PNG_SIGNATURE
from controlplane.http_server.quotas import BusyError
from controlplane.kube.access_review import User
from controlplane.links.handler import Answer, Done, Guest, NotDone, Picture, TakeScreenshot
from controlplane.virt_api.subresources.screenshot import AT_ONCE_OF_NAMESPACE
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from tests.controlplane.virt_api.served import USER
from tests.controlplane.virt_api.subresources.stage import VMI, Stage, a_vmi, opened
from tests.controlplane.virt_handler.streams.stage import NoStreams

LARGE = PNG_SIGNATURE + bytes(PNG_LIMIT_BYTES - len(PNG_SIGNATURE))
PATH = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web/vnc/screenshot"


class Screen(Stage):
    """A virt-api, and a virt-handler that takes screenshots."""

    def __init__(self, served: Any, own: SelfSignedPair) -> None:
        super().__init__(served, own)
        self.taken: list[TakeScreenshot] = []
        self.response: Answer = Picture(PNG_SIGNATURE + b"screen")
        self.endpoint = ApiEndpoint(self.tls, "virt", {TakeScreenshot: self._take}, NoStreams())

    async def _take(self, request: TakeScreenshot) -> Answer:
        self.taken.append(request)
        return self.response

    async def get(self, query: str = "") -> tuple[int, str, bytes]:
        """Return the code, the content type and the body."""
        async with self.served.session(self.proxy) as session:
            url = f"https://127.0.0.1:{self.served.port}{PATH}{query}"
            async with session.get(url, headers=USER, server_hostname="virt-api.kubevirt.svc") as response:
                return response.status, response.content_type, await response.read()


@pytest.fixture
async def stage(tmp_path: Path, pair: SelfSignedPair) -> AsyncIterator[Screen]:
    async with opened(Screen, tmp_path, pair) as stage:
        yield stage


@pytest.mark.parametrize("query", ["", "?moveCursor=true"])
async def test_a_screenshot_is_a_png_of_the_named_guest(stage: Screen, query: str) -> None:
    uid = stage.served.api.put(VMI, a_vmi())["metadata"]["uid"]

    assert await stage.get(query) == (200, "image/png", PNG_SIGNATURE + b"screen")

    assert stage.taken == [TakeScreenshot(Guest("node-1", uid, "pod-1"))]


async def test_the_right_to_the_whole_name_counts(stage: Screen) -> None:
    """kube-apiserver looks at the first segment alone, which `edit` has."""
    stage.served.api.put(VMI, a_vmi())
    stage.served.allowed = False

    code, _unused, body = await stage.get()

    assert (code, stage.taken) == (403, [])
    assert b'resource \\"virtualmachineinstances/vnc/screenshot\\"' in body
    attributes = stage.served.reviews[0]["resourceAttributes"]
    assert (attributes["verb"], attributes["subresource"]) == ("get", "vnc/screenshot")


async def test_the_largest_screenshot_passes(stage: Screen) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.response = Picture(LARGE)

    code, _unused, body = await stage.get()

    assert (code, body == LARGE) == (200, True)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (NotDone("refused", "VMI is not running"), "virtualmachineinstance ns/web: VMI is not running"),
        (NotDone("lost", "\x1b[31mred\n"), "[31mred"),
        (NotDone("busy", ""), "gives no reason"),
        (Done(), "answered another question"),
        (Picture(LARGE + b"x"), "sent an invalid answer"),
        (Picture(b"<svg/>"), "sent an invalid answer"),
    ],
    ids=["refused", "lost", "busy", "other", "too large", "no PNG"],
)
async def test_every_failure_is_a_500_with_plain_text(stage: Screen, answer: Answer, text: str) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.response = answer

    code, content_type, body = await stage.get()

    assert (code, content_type) == (500, "text/plain")
    assert body.startswith(b"cannot take a screenshot of virtualmachineinstance ns/web: ")
    assert text in body.decode()
    assert b"\x1b" not in body


def without_screen() -> Any:
    vmi = a_vmi()
    vmi.setdefault("spec", {}).setdefault("domain", {}).setdefault("devices", {})["autoattachGraphicsDevice"] = False
    return vmi


@pytest.mark.parametrize(
    ("vmi", "text"),
    [
        (None, "NotFound"),
        (a_vmi("Scheduled"), "VMI is not running: its phase is Scheduled"),
        (without_screen(), "no graphics device; remove autoattachGraphicsDevice: false"),
    ],
    ids=["absent", "starting", "headless"],
)
async def test_no_question_is_sent_for_a_guest_without_a_screen(stage: Screen, vmi: Any, text: str) -> None:
    if vmi is not None:
        stage.served.api.put(VMI, vmi)

    code, _unused, body = await stage.get()

    assert (code, stage.taken) == (500, [])
    assert text in body.decode()


async def test_screenshots_count_until_they_are_written(stage: Screen) -> None:
    stage.served.api.put(VMI, a_vmi())
    assert stage.served.server is not None
    screenshots, key = stage.served.server.subresources.screenshots, Key("ns", "web")
    with ExitStack() as until_written:
        for _unused in range(AT_ONCE_OF_NAMESPACE):
            assert (await screenshots.get(key, User("jane"), until_written)).code == 200
        with pytest.raises(BusyError, match="screenshots of a namespace at once"):
            await screenshots.get(key, User("jane"), until_written)
        assert (await stage.get())[0] == 429
    assert (await stage.get())[0] == 200

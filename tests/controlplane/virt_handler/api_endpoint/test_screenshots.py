# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Screenshots: which guest virt-handler looks at, what it answers, how many it takes at once."""

from __future__ import annotations

import asyncio

import pytest

from controlplane.domain.screenshot import PNG_SIGNATURE
from controlplane.links.handler import Answer, Guest, NotDone, Picture, TakeScreenshot
from controlplane.virt_handler.api_endpoint.screenshots import AT_ONCE_OF_NAMESPACE, Screenshots
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.virt_handler.builders import NODE, OTHER, POD_UID, VMI_UID, a_launcher, seen
from tests.controlplane.virt_handler.fakes import until

PPM = b"P6\n1 1\n255\n\0\0\0"


class Stage:
    """A node with one launcher."""

    def __init__(self) -> None:
        self.known = a_launcher(seen())
        self.taken = 0
        self.result: bytes | Exception = PPM
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.screenshots = Screenshots(NODE, self)

    def session(self, pod_uid: str) -> Stage | None:
        return self if pod_uid == POD_UID else None

    def launcher(self) -> Launcher:
        return self.known

    async def take_screenshot(self) -> bytearray:
        self.taken += 1
        await self.may_end.wait()
        if isinstance(self.result, Exception):
            raise self.result
        return bytearray(self.result)

    async def ask(self, *, node: str = NODE, vmi_uid: str = VMI_UID, pod_uid: str = POD_UID) -> Answer:
        return await self.screenshots.answer(TakeScreenshot(Guest(node, vmi_uid, pod_uid)))


async def test_a_picture_is_answered_as_a_png() -> None:
    answer = await Stage().ask()
    assert isinstance(answer, Picture)
    assert answer.png.startswith(PNG_SIGNATURE)


@pytest.mark.parametrize("wrong", [{"node": OTHER}, {"vmi_uid": "another"}, {"pod_uid": "another"}], ids=str)
async def test_a_request_for_another_node_vmi_or_pod_is_answered_absent(wrong: dict[str, str]) -> None:
    stage = Stage()
    answer = await stage.ask(**wrong)
    assert isinstance(answer, NotDone)
    assert (answer.kind, stage.taken) == ("absent", 0)


@pytest.mark.parametrize(
    ("result", "kind", "text"),
    [
        (VerbRefused("VMI is not running"), "refused", "VMI is not running"),
        (NoContact("no\nanswer" * 1000), "lost", "no"),
        (b"garbage", "refused", "libvirt's picture of the screen cannot be used: it is neither a PNG nor"),
    ],
    ids=["refused", "lost", "garbage"],
)
async def test_a_failure_is_reported_as_one_bounded_line(result: bytes | Exception, kind: str, text: str) -> None:
    stage = Stage()
    stage.result = result
    answer = await stage.ask()
    assert isinstance(answer, NotDone)
    assert (answer.kind, answer.text.startswith(text)) == (kind, True)
    assert "\n" not in answer.text
    assert len(answer.text) <= 1024


async def test_a_namespace_has_a_few_at_once_also_when_its_users_do_not_wait() -> None:
    stage = Stage()
    stage.may_end.clear()
    asked = [asyncio.create_task(stage.ask()) for _unused in range(AT_ONCE_OF_NAMESPACE)]
    await until(lambda: stage.taken == AT_ONCE_OF_NAMESPACE, "the calls to libvirt")
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)

    answer = await stage.ask()
    assert isinstance(answer, NotDone)
    assert (answer.kind, stage.taken) == ("busy", AT_ONCE_OF_NAMESPACE)
    assert "try again" in answer.text

    stage.may_end.set()
    while not isinstance(answer, Picture):
        answer = await stage.ask()

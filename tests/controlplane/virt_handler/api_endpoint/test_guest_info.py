# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose guest is asked, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from controlplane.domain.guest_details import HOST_NAME, USERS
from controlplane.links.handler import About, Answer, Details, Guest, Inquire, NotDone
from controlplane.virt_handler.api_endpoint.guest_info import GuestInfo
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.virt_handler.builders import (
    NODE,
    OTHER,
    POD_UID,
    VMI_UID,
    a_launcher,
    a_pod,
    observed,
    seen,
)


class Stage:
    """A node with one launcher, whose guest answers."""

    def __init__(self) -> None:
        self.known = a_launcher(seen())
        self.asked: list[str] = []
        self.error: Exception | None = None

    def session(self, pod_uid: str) -> Stage | None:
        return self if pod_uid == POD_UID else None

    def launcher(self) -> Launcher:
        return self.known

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        self.asked += commands
        if self.error is not None:
            raise self.error
        said: dict[str, Any] = {HOST_NAME: {"host-name": "web-1"}, USERS: [{"user": "root"}]}
        return {command: json.dumps({"return": said[command]}) for command in commands if command in said}

    async def ask(
        self, about: About = "guestosinfo", *, node: str = NODE, vmi_uid: str = VMI_UID, pod_uid: str = POD_UID
    ) -> Answer:
        return await GuestInfo(NODE, self).answer(Inquire(Guest(node, vmi_uid, pod_uid), about))


async def test_the_guest_that_is_meant_tells() -> None:
    answer = await Stage().ask()
    assert isinstance(answer, Details)
    assert (answer.told.hostname, [one.user_name for one in answer.told.user_list]) == ("web-1", ["root"])


async def test_no_more_is_asked_than_is_wanted() -> None:
    stage = Stage()
    await stage.ask("userlist")
    assert stage.asked == [USERS]


@pytest.mark.parametrize("wrong", [{"node": OTHER}, {"vmi_uid": "another"}, {"pod_uid": "another"}], ids=str)
async def test_what_is_not_here_is_not_asked(wrong: dict[str, str]) -> None:
    stage = Stage()
    answer = await stage.ask(**wrong)  # type: ignore[arg-type]
    assert isinstance(answer, NotDone)
    assert (answer.kind, stage.asked) == ("absent", [])


@pytest.mark.parametrize(
    "launcher",
    [a_launcher(seen(), a_pod(owner_uid="another")), a_launcher(seen(observed=observed(uid="another")))],
    ids=["its Pod is another's", "its domain is another's"],
)
async def test_a_guest_that_is_another_machines_is_not_asked(launcher: Launcher) -> None:
    stage = Stage()
    stage.known = launcher
    answer = await stage.ask()
    assert isinstance(answer, NotDone)
    assert (answer.kind, stage.asked) == ("absent", [])


@pytest.mark.parametrize(
    ("error", "kind"),
    [(VerbRefused("VMI does not have guest agent connected"), "refused"), (NoContact("no\nanswer" * 1000), "lost")],
)
async def test_why_a_guest_does_not_tell_is_said(error: Exception, kind: str) -> None:
    stage = Stage()
    stage.error = error
    answer = await stage.ask()
    assert isinstance(answer, NotDone)
    assert answer.kind == kind
    assert "\n" not in answer.text
    assert len(answer.text) <= 1024

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guest information: which guest virt-handler asks, and what it answers."""

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
    """A node with one launcher and a guest agent."""

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
        results: dict[str, Any] = {HOST_NAME: {"host-name": "web-1"}, USERS: [{"user": "root"}]}
        return {command: json.dumps({"return": results[command]}) for command in commands if command in results}

    async def ask(
        self, about: About = "guestosinfo", *, node: str = NODE, vmi_uid: str = VMI_UID, pod_uid: str = POD_UID
    ) -> Answer:
        return await GuestInfo(NODE, self).answer(Inquire(Guest(node, vmi_uid, pod_uid), about))


async def test_guest_info_comes_from_the_named_guest() -> None:
    answer = await Stage().ask()
    assert isinstance(answer, Details)
    assert (answer.info.hostname, [user.user_name for user in answer.info.user_list]) == ("web-1", ["root"])


async def test_only_the_needed_agent_commands_run() -> None:
    stage = Stage()
    await stage.ask("userlist")
    assert stage.asked == [USERS]


@pytest.mark.parametrize("wrong", [{"node": OTHER}, {"vmi_uid": "another"}, {"pod_uid": "another"}], ids=str)
async def test_a_request_for_another_node_vmi_or_pod_is_answered_absent(wrong: dict[str, str]) -> None:
    stage = Stage()
    answer = await stage.ask(**wrong)  # type: ignore[arg-type]
    assert isinstance(answer, NotDone)
    assert (answer.kind, stage.asked) == ("absent", [])


@pytest.mark.parametrize(
    "launcher",
    [a_launcher(seen(), a_pod(owner_uid="another")), a_launcher(seen(observed=observed(uid="another")))],
    ids=["its Pod is another's", "its domain is another's"],
)
async def test_a_launcher_or_domain_of_another_vmi_is_answered_absent(launcher: Launcher) -> None:
    stage = Stage()
    stage.known = launcher
    answer = await stage.ask()
    assert isinstance(answer, NotDone)
    assert (answer.kind, stage.asked) == ("absent", [])


@pytest.mark.parametrize(
    ("error", "kind"),
    [(VerbRefused("VMI does not have guest agent connected"), "refused"), (NoContact("no\nanswer" * 1000), "lost")],
)
async def test_an_agent_error_is_reported_as_one_bounded_line(error: Exception, kind: str) -> None:
    stage = Stage()
    stage.error = error
    answer = await stage.ask()
    assert isinstance(answer, NotDone)
    assert answer.kind == kind
    assert "\n" not in answer.text
    assert len(answer.text) <= 1024

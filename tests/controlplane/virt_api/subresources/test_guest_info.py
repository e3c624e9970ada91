# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""guestosinfo, userlist and filesystemlist, from a user's request to a node's virt-handler and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.api.objects.guest_info import GuestAgentInfo, GuestFileSystem, GuestFileSystems, GuestUser
from controlplane.api.objects.vmi.status import GuestOsInfo
from controlplane.links.handler import Answer, Details, Done, Guest, Inquire, NotDone
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from tests.controlplane.virt_api.served import USER
from tests.controlplane.virt_api.subresources.stage import VMI, Stage, a_vmi, opened
from tests.controlplane.virt_handler.streams.stage import NoStreams

ROOT = GuestUser(user_name="root", login_time=1.5)
DISK = GuestFileSystem(disk_name="vda1", mount_point="/", file_system_type="ext4", used_bytes=0, total_bytes=10)
INFO = GuestAgentInfo(
    hostname="web-1", os=GuestOsInfo(id="debian"), user_list=(ROOT,), fs_info=GuestFileSystems(disks=(DISK,))
)
A_DISK = {"diskName": "vda1", "mountPoint": "/", "fileSystemType": "ext4", "usedBytes": 0, "totalBytes": 10}
A_USER = {"userName": "root", "loginTime": 1.5}


class Inquired(Stage):
    """A virt-api, and a virt-handler that answers questions about a guest."""

    def __init__(self, served: Any, own: SelfSignedPair) -> None:
        super().__init__(served, own)
        self.inquired: list[Inquire] = []
        self.response = Details(INFO)
        self.endpoint = ApiEndpoint(self.tls, "virt", {Inquire: self._answer_inquiry}, NoStreams())

    async def _answer_inquiry(self, inquiry: Inquire) -> Answer:
        self.inquired.append(inquiry)
        return self.response

    async def get(self, about: str) -> tuple[int, Any]:
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web/{about}"
        return await self.served.call("GET", path, pair=self.proxy, headers=USER)


@pytest.fixture
async def stage(tmp_path: Path, pair: SelfSignedPair) -> AsyncIterator[Inquired]:
    async with opened(Inquired, tmp_path, pair) as stage:
        yield stage


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        (
            "guestosinfo",
            {
                "kind": "VirtualMachineInstanceGuestAgentInfo",
                "apiVersion": "kubevirt.io/v1",
                "hostname": "web-1",
                "os": {"id": "debian"},
                "userList": [A_USER],
                "fsInfo": {"disks": [A_DISK]},
            },
        ),
        (
            "userlist",
            {
                "kind": "VirtualMachineInstanceGuestOSUserList",
                "apiVersion": "kubevirt.io/v1",
                "metadata": {},
                "items": [A_USER],
            },
        ),
        (
            "filesystemlist",
            {
                "kind": "VirtualMachineInstanceFileSystemList",
                "apiVersion": "kubevirt.io/v1",
                "metadata": {},
                "items": [A_DISK],
            },
        ),
    ],
)
async def test_guest_info_has_upstreams_format(stage: Inquired, about: Any, expected: Any) -> None:
    uid = stage.served.api.put(VMI, a_vmi())["metadata"]["uid"]

    assert await stage.get(about) == (200, expected)

    assert stage.inquired == [Inquire(Guest("node-1", uid, "pod-1"), about)]
    access = [
        (review["resourceAttributes"]["verb"], review["resourceAttributes"]["subresource"])
        for review in stage.served.reviews
    ]
    assert access == [("get", about)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (NotDone("refused", "VMI does not have guest agent connected"), "VMI does not have guest agent connected"),
        (NotDone("lost", "\x1b[31mred\n"), "[31mred"),
        (NotDone("lost", ""), "gives no reason"),
        (Done(), "answered another question"),
    ],
)
async def test_every_failure_is_a_500_with_plain_text(stage: Inquired, answer: Answer, text: str) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.response = answer

    code, body = await stage.get("guestosinfo")

    assert code == 500
    assert text in body
    assert "\x1b" not in body


@pytest.mark.parametrize(("vmi", "text"), [(None, "NotFound"), (a_vmi("Scheduled"), "VMI is not running")])
async def test_no_question_is_sent_for_a_guest_that_does_not_run(stage: Inquired, vmi: Any, text: str) -> None:
    if vmi is not None:
        stage.served.api.put(VMI, vmi)

    code, body = await stage.get("userlist")

    assert (code, stage.inquired) == (500, [])
    assert text in body

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of a stream to a port name the machine, the port, and what to do."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import ApiError
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket_frames import Closed
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward.open_port import open_port, why_ended

from .conftest import ECHO, GUESTS, Server

NO_RIGHT = (
    'User "joe" cannot get resource "virtualmachineinstances/portforward" in API group "subresources.kubevirt.io"'
)


@pytest.mark.parametrize(
    ("code", "message", "remedy"),
    [
        (400, "it is not running (yet): its phase is Scheduling", "start it (kubevirt_vm with state=started)"),
        (403, NO_RIGHT, "ask the cluster's administrator for this right"),
        (404, "virtualmachineinstance not found", "start it (kubevirt_vm with state=started)"),
        (409, "it is paused", "kubevirt_vm with state=unpaused unpauses it"),
        (429, "it has 16 open streams", "close connections that nobody uses"),
        (500, "nothing listens there", "have a program in the guest listen on this port"),
        (503, "no virt-handler", "look at the control plane's Pods"),
    ],
)
def test_a_refusal_says_what_to_do(server: Server, api: Api, code: int, message: str, remedy: str) -> None:
    server.refusals = [(code, message)]
    with pytest.raises(ApiError) as refused:
        open_port(api, GUESTS, "database", ECHO)
    text = refused.value.message
    assert text.startswith(f"cannot connect to port 7 of VirtualMachineInstance default/database: {message}")
    assert remedy in text
    assert refused.value.status == code


@pytest.mark.parametrize(
    ("closed", "words"),
    [
        (Closed(1006, "the connection broke"), "the connection broke; look whether the machine still runs"),
        (Closed(1011, "the guest has reset the connection"), "look whether the machine still runs"),
        (Closed(1011, "the guest has stopped, or runs on another node"), "run the task that uses the port again"),
        (Closed(4002, "the guest moved"), "the guest moved; run the task that uses the port again"),
        (Closed(4003, "you did not read"), "read what the program sends"),
        (Closed(4004, "your right was taken away"), "ask the cluster's administrator"),
        (Closed(4005, "it was replaced"), "with the new instance"),
        (Closed(1012, ""), "close code 1012; look whether the machine still runs"),
    ],
)
def test_an_end_says_what_to_do(closed: Closed, words: str) -> None:
    text = why_ended(GUESTS, "database", 5432, closed)
    assert text.startswith("the connection to port 5432 of VirtualMachineInstance default/database ended: ")
    assert words in text

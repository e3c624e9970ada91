# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test guest's agent, asked over QEMU's own channel: the promises of docs/images.md."""

from __future__ import annotations

import base64
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain.agent import REQUIRED
from tests.images.guest_agent import AgentChannel, channel
from tests.images.guest_process import GuestProcess
from tests.images.test_guest_boot import NETWORK, boot_kernel

pytestmark = pytest.mark.guest


def outcome(agent: AgentChannel, path: str, *words: str, **more: Any) -> dict[str, Any]:
    """Run a program in the guest to its end."""
    pid = agent.ask("guest-exec", path=path, arg=list(words), **{"capture-output": True, **more})["pid"]
    for _unused in range(200):
        status: dict[str, Any] = agent.ask("guest-exec-status", pid=pid)
        if status["exited"]:
            return status
        threading.Event().wait(0.05)
    raise AssertionError(f"{path} does not end")


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def check_protocol(agent: AgentChannel) -> None:
    assert agent.ask("guest-sync", id=4711) == 4711
    assert agent.ask("guest-sync-delimited", id=12) == 12
    assert agent.ask("guest-ping") == {}
    assert {command["name"] for command in agent.ask("guest-info")["supported_commands"]} >= REQUIRED
    assert agent.ask("guest-get-osinfo")["id"] == "virtops-guest"
    assert agent.ask("guest-get-host-name") == {"host-name": "virtops-guest"}
    assert agent.ask("guest-get-timezone")["zone"] == "UTC"
    assert agent.ask("guest-get-time") > 10**18
    (eth0,) = [item for item in agent.ask("guest-network-get-interfaces") if item["name"] == "eth0"]
    assert {"ip-address-type": "ipv4", "ip-address": "10.0.2.15", "prefix": 24} in eth0["ip-addresses"]
    assert re.fullmatch(r"52:54:00(:[0-9a-f]{2}){3}", eth0["hardware-address"])
    assert agent.ask("guest-get-users") == []
    assert {"/run", "/dev"} <= {item["mountpoint"] for item in agent.ask("guest-get-fsinfo")}

    assert agent.ask("guest-fsfreeze-status") == "thawed"
    assert agent.ask("guest-fsfreeze-freeze") == 1
    assert agent.ask("guest-fsfreeze-status") == "frozen"
    assert agent.ask("guest-get-users")["class"] == "CommandNotFound"
    assert agent.ask("guest-fsfreeze-thaw") == 1

    ended = outcome(agent, "/bin/sh", "-c", 'echo "it\'s $0"; echo no >&2; exit 3', 'a "word"')
    assert (ended["exitcode"], decoded(ended["out-data"]), decoded(ended["err-data"])) == (
        3,
        'it\'s a "word"\n',
        "no\n",
    )
    counted = outcome(agent, "wc", "-c", **{"input-data": base64.b64encode(b"12345").decode()})
    assert decoded(counted["out-data"]).strip() == "5"
    assert outcome(agent, "/nowhere")["exitcode"] == 127
    assert agent.ask("guest-exec-status", pid=999)["class"] == "GenericError"
    assert agent.ask("guest-set-vcpus")["class"] == "CommandNotFound"

    assert agent.ask("guest-set-time", time=1_800_000_000_500_000_000) == {}
    assert 0 <= agent.ask("guest-get-time") - 1_800_000_000 * 10**9 < 300 * 10**9
    assert agent.ask("guest-set-time")["class"] == "GenericError"


@pytest.mark.nightly
def test_the_agent_answers_and_reconnects_and_can_be_silenced(
    launcher_root: Path, guest_files: Path, tmp_path: Path
) -> None:
    path = tmp_path / "agent"
    with GuestProcess(launcher_root, tmp_path, [*boot_kernel(guest_files), *NETWORK, *channel(path)]) as guest:
        guest.expect(r"ready hostname=virtops-guest ip=10\.0\.2\.15")
        with AgentChannel(path) as agent:
            check_protocol(agent)

        guest.log_in()
        with AgentChannel(path) as agent:  # the host connects again
            assert agent.ask("guest-sync", id=1) == 1
            assert [item["user"] for item in agent.ask("guest-get-users")] == ["root"]
            check_silence(guest, agent)

        before = guest.run("cat /run/agent/pid")
        guest.run("sleep 3")
        assert guest.run("cat /run/agent/pid") == before, "it keeps its port open while nobody is connected"
        with AgentChannel(path) as agent:
            assert agent.ask("guest-sync", id=3) == 3


def check_silence(guest: GuestProcess, agent: AgentChannel) -> None:
    """The host sees the port closed in the guest."""
    guest.run("agent off")
    info = ""
    for _unused in range(200):
        info = guest.qmp("human-monitor-command", **{"command-line": "info qtree"})
        if "guest off" in info:
            break
        threading.Event().wait(0.05)
    assert "guest off" in info
    guest.run("agent on")
    assert agent.ask("guest-sync", id=2) == 2

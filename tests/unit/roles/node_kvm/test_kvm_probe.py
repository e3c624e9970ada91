# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The KVM probe ends on time whatever KVM does. Its result on a real machine: tests/images/test_guest_boot.py."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).resolve().parents[4] / "roles/node_kvm/files/kvm_probe.py"


@pytest.fixture
def kvm_probe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kvm_probe", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hang(_device: str) -> None:
    signal.pause()


def die(_device: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(_device: str) -> None:
    raise OSError(22, "Invalid argument")


def break_down(_device: str) -> None:
    raise ZeroDivisionError


def children() -> set[int]:
    """List the children of this process, zombies too. The process may have others."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


@pytest.mark.parametrize(
    ("run_guest", "reason"),
    [
        pytest.param(hang, "KVM hangs: a virtual processor did not finish within 2.1 s", id="KVM_RUN never returns"),
        pytest.param(die, "the process that ran a virtual processor died", id="the child dies"),
        pytest.param(refuse, "KVM refused to make a virtual machine: Invalid argument", id="an ioctl fails"),
        pytest.param(break_down, "the probe itself failed", id="a fault of the probe"),
    ],
)
def test_every_failure_is_a_verdict_with_a_reason_and_leaves_no_child(
    kvm_probe: ModuleType,
    run_guest: Callable[[str], None],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(kvm_probe, "run_guest", run_guest)
    before = children()
    usable, said = kvm_probe.probe("/dev/kvm", 3)
    assert not usable
    assert said.startswith(reason)
    assert children() <= before


def test_a_guest_that_ran_makes_kvm_usable(kvm_probe: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe, "run_guest", lambda device: None)
    usable, reason = kvm_probe.probe("/dev/kvm", 5)
    assert usable
    assert "ran from real mode to long mode" in reason


def test_a_child_that_cannot_be_killed_does_not_block_the_probe(
    kvm_probe: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process stuck in KVM_RUN may survive SIGKILL; here the kill does nothing."""
    children: list[int] = []
    monkeypatch.setattr(kvm_probe, "run_guest", hang)
    real_kill = os.kill
    monkeypatch.setattr(kvm_probe.os, "kill", lambda pid, _signal: children.append(pid))
    try:
        usable, reason = kvm_probe.probe("/dev/kvm", 0.3)
        assert not usable
        assert "cannot be killed" in reason
    finally:
        real_kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        pytest.param("{tmp}/kvm", "does not exist: virtualization is off", id="no device"),
        pytest.param("/dev/null", "KVM refused to make a virtual machine: Inappropriate ioctl", id="another device"),
        pytest.param("{tmp}", "does not open: Is a directory", id="a directory"),
    ],
)
def test_a_path_that_is_no_device_is_named(device: str, reason: str, tmp_path: Path) -> None:
    command = [sys.executable, "-I", str(PROGRAM), "--device", device.format(tmp=tmp_path)]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout)
    assert answer["usable"] is False
    assert reason in answer["reason"]


def test_missing_permission_is_named(kvm_probe: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*_unused: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(kvm_probe.os, "open", deny)
    assert kvm_probe.probe("/dev/kvm", 5)[1].startswith("no permission to open /dev/kvm")


def test_this_machine_gets_a_verdict_in_time() -> None:
    done = subprocess.run([sys.executable, "-I", str(PROGRAM)], capture_output=True, text=True, check=True, timeout=10)
    answer = json.loads(done.stdout)
    assert set(answer) == {"usable", "reason"}
    assert answer["reason"]

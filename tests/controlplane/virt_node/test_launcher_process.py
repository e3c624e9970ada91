# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process listens on a socket, and which network namespace it has."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.virt_node import launcher_process
from controlplane.virt_node.launcher_dir import Refused
from controlplane.virt_node.launcher_process import count_processes, is_in_pod, pod_network_namespace
from tests.controlplane.virt_handler.fakes import FakeProc

UID = "0f0e0d0c-1111-2222-3333-444455556666"
FS = f"/kubepods/besteffort/pod{UID}/abc"
SYSTEMD = (
    f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID.replace('-', '_')}.slice/cri-abc.scope"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"0::{FS}\n", True),
        (f"12:pids:{FS}\n11:cpu:{FS}\n1:name=systemd:/\n", True),
        (f"0::{SYSTEMD}\n", True),
        (f"0::/kubepods/pod{UID}\n", True),
        ("0::/\n", False),
        ("", False),
        (f"0::{FS.replace('0f0e', 'ffff')}\n", False),
        (f"12:pids:{FS}\n11:cpu:/kubepods/podffff0000/x\n", False),
        (f"0::/kubepods/burstable/podffff/x/pod{UID}/y\n", False),
        (f"0::/user.slice/xpod{UID}\n", False),
    ],
    ids=[
        "cgroupfs, version 2",
        "cgroupfs, version 1",
        "systemd",
        "guaranteed",
        "no Pod",
        "no text",
        "another Pod",
        "two Pods in two hierarchies",
        "a cgroup made to look like ours inside another Pod's",
        "a name that ends like a Pod's",
    ],
)
def test_the_cgroup_identifies_the_pod_of_a_process(text: str, expected: bool) -> None:
    assert is_in_pod(text, UID) is expected


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        server.listen()
        descriptor = os.open("sock", os.O_PATH | os.O_NOFOLLOW)
        yield descriptor
        os.close(descriptor)


def a_proc(root: Path, *, cgroup: str = f"0::{FS}\n", pod_namespace: str = "pod") -> str:
    """Make the part of /proc that is read, with this process in the role of libvirtd."""
    for pid, namespace in ((str(os.getpid()), pod_namespace), ("1", "node"), ("self", "node")):
        (root / pid / "ns").mkdir(parents=True)
        (root / f"{namespace}-namespace").touch()
        (root / pid / "ns" / "net").symlink_to(root / f"{namespace}-namespace")
        (root / pid / "cgroup").write_text(cgroup)
    return str(root)


def test_the_namespace_of_the_listening_process_is_opened(served: int, tmp_path: Path) -> None:
    with pod_network_namespace(served, UID, a_proc(tmp_path / "proc")) as namespace:
        assert os.fstat(namespace).st_ino == (tmp_path / "proc" / "pod-namespace").stat().st_ino


def test_the_listener_cannot_send_descriptors(served: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing a descriptor could block for as long as the launcher chooses. The kernel refuses it before we connect."""
    calls: list[bool] = []

    def refuse(client: socket.socket) -> None:
        with pytest.raises(OSError, match="not connected"):
            client.getpeername()
        calls.append(True)

    monkeypatch.setattr(launcher_process, "refuse_descriptors", refuse)
    with pod_network_namespace(served, UID, a_proc(tmp_path / "proc")):
        assert calls == [True]


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ({"cgroup": "0::/kubepods/podffff/x\n"}, "not in the cgroup of Pod"),
        ({"pod_namespace": "node"}, "shares the node's network namespace"),
    ],
    ids=["another Pod's process", "hostNetwork"],
)
def test_a_namespace_that_is_not_the_pods_own_is_refused(
    layout: dict[str, str], text: str, served: int, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match=text), pod_network_namespace(served, UID, a_proc(tmp_path / "proc", **layout)):
        pass


def test_an_exited_process_is_not_confused_with_a_new_one_of_its_pid(
    served: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["/bin/true"]) as ended:
        pinned = os.pidfd_open(ended.pid)
    monkeypatch.setattr(os, "pidfd_open", lambda _pid: pinned)
    with (
        pytest.raises(ProcessLookupError, match="has exited"),
        pod_network_namespace(served, UID, a_proc(tmp_path / "proc")),
    ):
        pass


def test_a_socket_without_listener_is_an_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
    descriptor = os.open("sock", os.O_PATH | os.O_NOFOLLOW)
    with pytest.raises(ConnectionRefusedError), pod_network_namespace(descriptor, UID):
        pass
    os.close(descriptor)


@pytest.fixture
def node_proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


@pytest.mark.parametrize(
    ("cgroups", "expected"),
    [
        ((), 0),
        ((f"0::{FS}\n",), 1),
        ((f"0::{FS}\n", f"0::{SYSTEMD}\n", "0::/kubepods/podffff/x\n"), 2),
        ((f"0::{FS} (deleted)\n",), 1),
        ((f"0::/../../besteffort/pod{UID}/abc\n",), 1),
        ((f"12:pids:{FS}\n11:cpu:/kubepods/podffff0000/x\n",), 1),
        (("0::/\n", ""), 0),
    ],
    ids=[
        "nothing",
        "one",
        "two of three",
        "in a cgroup that is removed",
        "seen from another cgroup namespace",
        "in two Pods' cgroups",
        "no Pod's",
    ],
)
def test_every_process_that_may_belong_to_the_pod_counts(
    cgroups: tuple[str, ...], expected: int, node_proc: FakeProc
) -> None:
    for pid, text in enumerate(cgroups, start=100):
        node_proc.add(pid, text)
    assert count_processes(UID, str(node_proc.root)) == (expected, 0)


def test_a_process_that_exits_during_the_count_is_skipped(node_proc: FakeProc) -> None:
    (node_proc.root / "100").mkdir()
    node_proc.add(101, f"0::{FS}\n")
    assert count_processes(UID, str(node_proc.root)) == (1, 0)


def test_qemu_processes_are_also_counted_separately(node_proc: FakeProc) -> None:
    node_proc.add(101, f"0::{FS}\n")
    node_proc.add(102, f"0::{FS}\n", "qemu-system-x86")
    assert count_processes(UID, str(node_proc.root)) == (2, 1)


def test_the_count_waits_for_the_end_of_qemu_and_no_longer(node_proc: FakeProc) -> None:
    """The process is a real one, because the kernel reports its end."""
    with subprocess.Popen(["sleep", "60"]) as process:
        node_proc.add(process.pid, f"0::{FS}\n", "qemu-system-x86")

        def end() -> None:
            process.kill()
            process.wait()
            (node_proc.root / str(process.pid)).rename(node_proc.root / "ended")  # at once, as in the kernel

        assert count_processes(UID, str(node_proc.root), wait_seconds=0.01) == (1, 1)
        timer = threading.Timer(0.05, end)
        timer.start()
        began = time.monotonic()
        assert count_processes(UID, str(node_proc.root), wait_seconds=60.0) == (0, 0)
        assert time.monotonic() - began < 50
        timer.join()


def test_a_qemu_that_is_not_reaped_counts_until_it_is(node_proc: FakeProc) -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        node_proc.add(process.pid, f"0::{FS}\n", "qemu-system-x86")

        assert count_processes(UID, str(node_proc.root), wait_seconds=0.02) == (1, 1)


def test_an_unreadable_process_is_an_error(node_proc: FakeProc) -> None:
    (node_proc.root / "100" / "cgroup").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        count_processes(UID, str(node_proc.root))


def test_without_host_pid_counting_is_refused(node_proc: FakeProc) -> None:
    node_proc.see_mounts("1", "handler")
    with pytest.raises(Refused, match="hostPID is needed"):
        count_processes(UID, str(node_proc.root))

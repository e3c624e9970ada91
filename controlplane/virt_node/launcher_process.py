# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that listens on a launcher's libvirt socket, its network namespace, and the processes of a Pod.

SO_PEERCRED of a checked socket (launcher_dir) identifies the process, a pidfd pins it, and it must be in the Pod's
cgroup. The node's own network namespace is refused: virt-node must not change the node's interfaces for a Pod with
hostNetwork that looks like a launcher.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from controlplane.process.fd_passing import refuse_descriptors
from controlplane.virt_node.launcher_dir import Refused, closing_fd, proc_path

_CONNECT_SECONDS = 2.0
EMULATOR = "qemu-system"
"""Prefix of the kernel's name of a QEMU process, on every architecture."""
_CGROUP_LIMIT_BYTES = 16384
_REAP_SECONDS = 0.005
_CREDENTIALS = struct.Struct("3i")


@contextmanager
def pod_network_namespace(socket_fd: int, pod_uid: str, proc: str = "/proc") -> Iterator[int]:
    """Open the network namespace of the process that listens on a socket of open_socket, if it is in this Pod.

    Refused for another Pod's process or the node's namespace. OSError if the process has exited: try again, because
    the launcher restarts libvirtd.
    """
    pid = _listener(socket_fd)
    with closing_fd(os.pidfd_open(pid)) as pidfd:
        if not is_in_pod(_read_cgroup(proc, pid), pod_uid):
            raise Refused(f"libvirt's socket is served by process {pid}, which is not in the cgroup of Pod {pod_uid}")
        with closing_fd(os.open(f"{proc}/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)) as namespace:
            if _has_exited(pidfd):  # the number may belong to another process by now
                raise ProcessLookupError(f"process {pid} behind libvirt's socket has exited")
            if _identity(namespace) in (_identity_of(f"{proc}/1/ns/net"), _identity_of(f"{proc}/self/ns/net")):
                raise Refused("the Pod shares the node's network namespace")
            yield namespace


def count_processes(pod_uid: str, proc: str = "/proc", *, wait_seconds: float = 0.0) -> tuple[int, int]:
    """Count the node's processes with this Pod in their cgroup: all of them, and the QEMU processes.

    It first waits for QEMU to end, at most wait_seconds. A process in the Pod can name itself like QEMU, and count as a
    live guest: that only delays recovery. Refused if the node's processes are not visible, because a count of 0 would
    prove nothing.
    """
    if _identity_of(f"{proc}/1/ns/mnt") == _identity_of(f"{proc}/self/ns/mnt"):
        raise Refused("process 1 shares this process's mounts, so it is not the node's: hostPID is needed")
    deadline = time.monotonic() + wait_seconds
    while True:
        processes = list(_processes_of(pod_uid, proc))
        emulators = [pid for pid in processes if _is_emulator(proc, pid)]
        seconds_left = deadline - time.monotonic()
        if not emulators or seconds_left <= 0:
            return len(processes), len(emulators)
        _wait_for_exit(emulators[0], seconds_left)


def _processes_of(pod_uid: str, proc: str) -> Iterator[int]:
    for name in os.listdir(proc):
        if name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has exited in the meantime
                if pod_uid in _pods_named(_read_cgroup(proc, int(name))):
                    yield int(name)


def _is_emulator(proc: str, pid: int) -> bool:
    try:
        return _read(f"{proc}/{pid}/comm").startswith(EMULATOR)
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_for_exit(pid: int, seconds: float) -> None:
    """Wait until a process ends. One that has ended and still has its entry in /proc gets time to be reaped."""
    with suppress(ProcessLookupError), closing_fd(os.pidfd_open(pid)) as pidfd:
        if not _has_exited(pidfd):
            _has_exited(pidfd, seconds)
            return
    time.sleep(min(seconds, _REAP_SECONDS))


def is_in_pod(cgroups: str, pod_uid: str) -> bool:
    """Tell whether /proc/PID/cgroup names this Pod and no other.

    It reads the paths of both cgroup drivers: .../pod<UID>/... of cgroupfs, ...-pod<UID with underscores>.slice/... of
    systemd.
    """
    return _pods_named(cgroups) == {pod_uid}


def _pods_named(cgroups: str) -> set[str]:
    return {
        match.group(1).replace("_", "-")
        for line in cgroups.splitlines()
        for match in re.finditer(r"(?:^|[/-])pod([0-9a-fA-F][0-9a-fA-F_-]*)(?=/|\.slice|$)", line.partition("/")[2])
    }


def _listener(socket_fd: int) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as client:
        refuse_descriptors(client)  # a descriptor that the listener sends could block our close(2)
        client.settimeout(_CONNECT_SECONDS)
        client.connect(proc_path(socket_fd))
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(credentials)[0]
    if pid <= 0:
        raise Refused("the process that serves libvirt's socket is not visible here: hostPID is needed")
    return pid


def _read_cgroup(proc: str, pid: int) -> str:
    return _read(f"{proc}/{pid}/cgroup")


def _read(path: str) -> str:
    with closing_fd(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as fd:
        return os.read(fd, _CGROUP_LIMIT_BYTES).decode(errors="replace")


def _has_exited(pidfd: int, seconds: float = 0.0) -> bool:
    """Tell whether a process has ended, or ends within some seconds."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(seconds * 1e3))


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _identity_of(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino

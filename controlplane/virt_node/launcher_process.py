# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process listens on a launcher's libvirt socket, the network namespace of its Pod, and what runs in a Pod.

The process is known by SO_PEERCRED of a socket that was proven first (launcher_dir), pinned by a pidfd, and
believed only when its cgroup is the Pod's. A namespace that is the node's own is refused, so a Pod with hostNetwork
that looks like a launcher cannot have the node's interfaces changed.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from controlplane.process.fd_passing import refuse_descriptors
from controlplane.virt_node.launcher_dir import Refused, held, proc_path

_DIAL_SECONDS = 2.0
EMULATOR = "qemu-system"
"""How the kernel calls QEMU's processes, whatever the architecture."""
_CGROUP_LIMIT_BYTES = 16384
_CREDENTIALS = struct.Struct("3i")


@contextmanager
def pod_network_namespace(socket_fd: int, pod_uid: str, proc: str = "/proc") -> Iterator[int]:
    """Open the network namespace of the process behind a socket of open_socket, proven to be of this Pod.

    Refused when it is another Pod's process or the node's namespace; OSError when the process is gone (try again:
    the supervisor restarts libvirtd).
    """
    pid = _listener(socket_fd)
    with held(os.pidfd_open(pid)) as pidfd:
        if not is_in_pod(_read_cgroup(proc, pid), pod_uid):
            raise Refused(f"libvirt's socket is served by process {pid}, which is not in the cgroup of Pod {pod_uid}")
        with held(os.open(f"{proc}/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)) as namespace:
            if _has_exited(pidfd):  # then the number may be another process by now
                raise ProcessLookupError(f"process {pid} behind libvirt's socket has exited")
            if _identity(namespace) in (_identity_of(f"{proc}/1/ns/net"), _identity_of(f"{proc}/self/ns/net")):
                raise Refused("the Pod shares the node's network namespace")
            yield namespace


def count_processes(pod_uid: str, proc: str = "/proc") -> tuple[int, int]:
    """Count the processes of this node with this Pod in their cgroup: all of them, and those that are QEMU.

    Whoever is in the Pod can call a process QEMU, and thereby have it taken for a guest that lives: no harm comes of
    that. Refused where the node's processes cannot be seen: then none would be no proof.
    """
    if _identity_of(f"{proc}/1/ns/mnt") == _identity_of(f"{proc}/self/ns/mnt"):
        raise Refused("process 1 shares this process's mounts, so it is not the node's: hostPID is needed")
    found = emulators = 0
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        with suppress(FileNotFoundError, ProcessLookupError):  # it has exited in the meantime
            if pod_uid in _pods_named(_read_cgroup(proc, int(name))):
                found += 1
                emulators += _read(f"{proc}/{name}/comm").startswith(EMULATOR)
    return found, emulators


def is_in_pod(cgroups: str, pod_uid: str) -> bool:
    """Say whether every path in the text of /proc/PID/cgroup that names a Pod names this one, and one does.

    Both spellings: .../pod<UID>/... of the cgroupfs driver, ...-pod<UID with underscores>.slice/... of systemd's.
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
        refuse_descriptors(client)  # whoever listens could have us wait for as long as it likes when this is closed
        client.settimeout(_DIAL_SECONDS)
        client.connect(proc_path(socket_fd))
        answer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(answer)[0]
    if pid <= 0:
        raise Refused("libvirt's socket is served by a process outside this process's view: hostPID is needed")
    return pid


def _read_cgroup(proc: str, pid: int) -> str:
    return _read(f"{proc}/{pid}/cgroup")


def _read(path: str) -> str:
    with held(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as fd:
        return os.read(fd, _CGROUP_LIMIT_BYTES).decode(errors="replace")


def _has_exited(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _identity_of(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino

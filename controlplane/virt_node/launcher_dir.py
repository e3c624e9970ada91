# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher's emptyDir as the kubelet has it on the node. No other module opens files that a tenant can change.

It opens every path component by component with O_NOFOLLOW, from a descriptor of the kubelet's directory of Pods. The
first component is a Pod's UID. So it refuses a link that a launcher creates, and never follows it. It checks the type
of the last component (socket, regular file) on the descriptor that is used afterwards. Every read has a limit. It
changes the owner only of entries that it created.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from controlplane.domain import layout
from controlplane.virt_node.inotify import NotYet

_DIRECTORY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY
_LEAF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BACKLOG = 16
_POD_UID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,62}[A-Za-z0-9])?")


class Refused(Exception):
    """Something in a launcher's directory is not what it must be: a link, a wrong type or owner, or too large."""


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


class PodsDirectory:
    """The kubelet's directory of Pods, e.g. /var/lib/kubelet/pods. It stays open."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._fd)

    def open_run(self, pod_uid: str) -> int:
        """Return a descriptor of the launcher's emptyDir. NotYet while the kubelet has not created it."""
        return _descend(self._fd, _run_components(pod_uid))

    def has_run(self, pod_uid: str) -> bool:
        """Tell whether a launcher's emptyDir still exists. Refused if its path is not a directory."""
        try:
            os.close(self.open_run(pod_uid))
        except NotYet as not_yet:
            with not_yet:
                return False
        return True

    def open_socket(self, pod_uid: str, components: Sequence[str] = layout.LIBVIRT_SOCKET) -> int:
        """Return a descriptor of a socket, by default libvirtd's. NotYet; Refused when it is not the launcher's socket.

        A connection through this descriptor reaches the checked socket, even if the directory has changed.
        """
        with closing_fd(self.open_run(pod_uid)) as run, closing_fd(_descend(run, components[:-1])) as parent:
            fd = _open_leaf(parent, components[-1])
            status = os.fstat(fd)
            if not stat.S_ISSOCK(status.st_mode) or status.st_uid != layout.UID:
                os.close(fd)
                raise Refused(f"{'/'.join(components)} is not a socket of uid {layout.UID}")
            return fd

    def listen(self, pod_uid: str, components: Sequence[str]) -> socket.socket:
        """Return a listening socket that the launcher can connect to. It replaces the previous one.

        NotYet, Refused, OSError. The directory belongs to the launcher, which could replace the new socket at once.
        (A launcher of a version without migrations has no such directory: this creates it.) So the owner changes only
        after a check that this is a socket of root with one link, which a launcher cannot create.
        """
        name = components[-1]
        with closing_fd(self.open_run(pod_uid)) as run, closing_fd(_make_directories(run, components[:-1])) as parent:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            try:
                listener.bind(f"{proc_path(parent)}/{name}")
                listener.listen(_BACKLOG)
                with closing_fd(_open_leaf(parent, name)) as leaf:
                    status = os.fstat(leaf)
                    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink != 1:
                        raise Refused(f"{'/'.join(components)} was replaced")
                    os.chown(proc_path(leaf), layout.UID, layout.UID)
            except BaseException:
                listener.close()
                raise
            return listener

    def open_file(self, pod_uid: str, name: str) -> int:
        """Return a descriptor to read a regular file of the emptyDir. NotYet; Refused if it is not a regular file.

        This checks the type before it opens the file for reading, because opening a device or a pipe can have effects.
        """
        with closing_fd(self.open_run(pod_uid)) as run, closing_fd(_open_leaf(run, name)) as leaf:
            if not stat.S_ISREG(os.fstat(leaf).st_mode):
                raise Refused(f"{name} is not a regular file")
            return os.open(proc_path(leaf), _READ)

    def write_files(self, pod_uid: str, components: Sequence[str], files: Mapping[str, bytes]) -> None:
        """Write files of uid 107, readable by all, into a directory below the emptyDir. Create missing directories.

        Existing files stay as they are. NotYet while the emptyDir is missing, Refused for a link in the path, OSError
        of the file system.
        """
        with closing_fd(self.open_run(pod_uid)) as run, closing_fd(_make_directories(run, components)) as directory:
            for name, data in files.items():
                _write_new(directory, name, data)


def proc_path(fd: int) -> str:
    """Return a path to the file of a descriptor. It resolves no other name."""
    return f"/proc/self/fd/{fd}"


def admit(socket_fd: int, gid: int) -> None:
    """Let a group connect to a checked socket. The group still cannot enter its directories."""
    os.chown(proc_path(socket_fd), -1, gid)
    os.chmod(proc_path(socket_fd), 0o770)  # noqa: S103 - two users connect to it: the launcher's and virt-handler's


def _run_components(pod_uid: str) -> tuple[str, ...]:
    if not _POD_UID.fullmatch(pod_uid):
        raise Refused(f"{pod_uid!r} is not a Pod UID")
    return (pod_uid, "volumes", "kubernetes.io~empty-dir", layout.RUN_VOLUME)


def _descend(start_fd: int, components: Sequence[str]) -> int:
    """Return a descriptor of the last directory; start_fd stays open."""
    fd = os.dup(start_fd)
    for name in components:
        try:
            child = os.open(name, _DIRECTORY, dir_fd=fd)
        except FileNotFoundError:
            raise NotYet(fd) from None
        except OSError as error:
            os.close(fd)
            raise _refusal(name, error) from error
        os.close(fd)
        fd = child
    return fd


def _open_leaf(directory_fd: int, name: str) -> int:
    try:
        return os.open(name, _LEAF, dir_fd=directory_fd)
    except FileNotFoundError:
        raise NotYet(os.dup(directory_fd)) from None
    except OSError as error:
        raise _refusal(name, error) from error


def _refusal(name: str, error: OSError) -> Exception:
    if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
        return Refused(f"{name} is a link, or not of the expected type")
    return error


def _make_directories(run_fd: int, components: Sequence[str]) -> int:
    fd = os.dup(run_fd)
    for name in components:
        # libvirtd and the supervisor create the same directories at the same time.
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=fd)
        try:
            child = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY, dir_fd=fd)
        except OSError as error:
            raise _refusal(name, error) from error
        finally:
            os.close(fd)
        fd = child
        if os.fstat(fd).st_uid == os.geteuid():
            # This process created it: a launcher cannot create a directory of root, or move one to this path.
            os.fchown(fd, layout.UID, layout.UID)
    return fd


def _write_new(directory_fd: int, name: str, data: bytes) -> None:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
        return
    staged = f".{name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(staged, dir_fd=directory_fd)
    with closing_fd(os.open(staged, _WRITE_NEW, 0o644, dir_fd=directory_fd)) as fd:
        os.fchmod(fd, 0o644)
        os.fchown(fd, layout.UID, layout.UID)  # libvirt overwrites a cache that does not match, and fails if it cannot
        written = 0
        while written < len(data):
            written += os.write(fd, data[written:])
    os.rename(staged, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)

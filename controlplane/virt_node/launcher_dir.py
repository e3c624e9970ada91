# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher's emptyDir as the kubelet has it on the node: the only code that opens files a tenant can touch.

Every path is walked component by component with O_NOFOLLOW from a descriptor of the kubelet's directory of Pods,
whose next component is a Pod UID. So a link that a launcher plants is refused, never followed. What a leaf is
(socket, regular file) is proven on the very descriptor that is used afterwards. Nothing is read without a limit, and
the owner of something changes only if it was made here.
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
    """Something in a launcher's directory is not what it has to be: a link, another type, another owner, too large."""


@contextmanager
def held(fd: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


class PodsDirectory:
    """The kubelet's directory of Pods, e.g. /var/lib/kubelet/pods, held open."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._fd)

    def open_run(self, pod_uid: str) -> int:
        """Return a descriptor of the launcher's emptyDir; NotYet while the kubelet has not made it."""
        return _descend(self._fd, _run_components(pod_uid))

    def has_run(self, pod_uid: str) -> bool:
        """Tell whether the kubelet still has a launcher's emptyDir. Refused when something else is in its place."""
        try:
            os.close(self.open_run(pod_uid))
        except NotYet as gap:
            with gap:
                return False
        return True

    def open_socket(self, pod_uid: str, components: Sequence[str] = layout.LIBVIRT_SOCKET) -> int:
        """Return a descriptor of a socket, libvirtd's if no other is named; NotYet, Refused when it is anything else.

        What the descriptor says is what is dialled through it, whatever the directory says by then.
        """
        with held(self.open_run(pod_uid)) as run, held(_descend(run, components[:-1])) as parent:
            fd = _open_leaf(parent, components[-1])
            found = os.fstat(fd)
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != layout.UID:
                os.close(fd)
                raise Refused(f"{'/'.join(components)} is not a socket of uid {layout.UID}")
            return fd

    def listen(self, pod_uid: str, components: Sequence[str]) -> socket.socket:
        """Return a socket that listens where the launcher dials; what has that name goes. NotYet, Refused, OSError.

        The directory is the launcher's, and made for one that was begun by a version without migrations. So what is
        there after it was made is looked at before it is given away: a socket of ours with one name. Nobody can bring
        another one of root's there.
        """
        name = components[-1]
        with held(self.open_run(pod_uid)) as run, held(_make_directories(run, components[:-1])) as parent:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            try:
                made.bind(f"{proc_path(parent)}/{name}")
                made.listen(_BACKLOG)
                with held(_open_leaf(parent, name)) as leaf:
                    found = os.fstat(leaf)
                    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
                        raise Refused(f"{'/'.join(components)} is not what was made there")
                    os.chown(proc_path(leaf), layout.UID, layout.UID)
            except BaseException:
                made.close()
                raise
            return made

    def open_file(self, pod_uid: str, name: str) -> int:
        """Return a descriptor to read a regular file of the emptyDir; Refused when it is anything else, NotYet.

        Opened for reading only after it was seen to be a file: to open a device or a pipe may already do something.
        """
        with held(self.open_run(pod_uid)) as run, held(_open_leaf(run, name)) as leaf:
            if not stat.S_ISREG(os.fstat(leaf).st_mode):
                raise Refused(f"{name} is not a regular file")
            return os.open(proc_path(leaf), _READ)

    def write_files(self, pod_uid: str, components: Sequence[str], files: Mapping[str, bytes]) -> None:
        """Put files of uid 107, readable by all, into a directory below the emptyDir, made for it where missing.

        A file that is there already stays as it is. NotYet while the emptyDir is missing, Refused when a link is in
        the way, OSError when the file system says no.
        """
        with held(self.open_run(pod_uid)) as run, held(_make_directories(run, components)) as directory:
            for name, data in files.items():
                _write_new(directory, name, data)


def proc_path(fd: int) -> str:
    """Name what a descriptor stands for: no other name is resolved on the way."""
    return f"/proc/self/fd/{fd}"


def admit(socket_fd: int, gid: int) -> None:
    """Let a group dial a socket that was proven. The directories above stay as they are: closed to it."""
    os.chown(proc_path(socket_fd), -1, gid)
    os.chmod(proc_path(socket_fd), 0o770)  # noqa: S103 - two users dial it: the launcher's own and virt-handler's


def _run_components(pod_uid: str) -> tuple[str, ...]:
    if not _POD_UID.fullmatch(pod_uid):
        raise Refused(f"{pod_uid!r} is not a Pod UID")
    return (pod_uid, "volumes", "kubernetes.io~empty-dir", layout.RUN_VOLUME)


def _descend(start_fd: int, components: Sequence[str]) -> int:
    """Return a descriptor of the directory at the end; start_fd stays open."""
    fd = os.dup(start_fd)
    for name in components:
        try:
            following = os.open(name, _DIRECTORY, dir_fd=fd)
        except FileNotFoundError:
            raise NotYet(fd) from None
        except OSError as error:
            os.close(fd)
            raise _refusal(name, error) from error
        os.close(fd)
        fd = following
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
        # libvirtd and the supervisor make the same directories at the same time.
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=fd)
        try:
            following = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY, dir_fd=fd)
        except OSError as error:
            raise _refusal(name, error) from error
        finally:
            os.close(fd)
        fd = following
        if os.fstat(fd).st_uid == os.geteuid():
            # Ours: a launcher cannot make anything that belongs to root, nor bring it here from another directory.
            os.fchown(fd, layout.UID, layout.UID)
    return fd


def _write_new(directory_fd: int, name: str, data: bytes) -> None:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
        return
    staged = f".{name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(staged, dir_fd=directory_fd)
    with held(os.open(staged, _WRITE_NEW, 0o644, dir_fd=directory_fd)) as fd:
        os.fchmod(fd, 0o644)
        os.fchown(fd, layout.UID, layout.UID)  # libvirt writes over one that does not fit, and fails where it cannot
        written = 0
        while written < len(data):
            written += os.write(fd, data[written:])
    os.rename(staged, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the mounted directory of Pods is the kubelet's, and where on the node the kubelet's root directory is.

An administrator names the root directory (control_plane_kubelet_root). If it exists without being the kubelet's, no
launcher would ever be found in it. The kubelet has a directory for each Pod that it runs, so also for this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

HOST_MOUNTS, OWN_MOUNTS = Path("/proc/1/mountinfo"), Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo. root: the path in the file system that is mounted at `point`."""

    device: str
    root: PurePosixPath
    point: PurePosixPath


def check_pods_directory(pods: Path, pod_uid: str, own_volume: Path) -> None:
    """Raise ValueError if the kubelet does not keep this Pod in the directory. own_volume: an emptyDir of this Pod."""
    if not pod_uid or (pods / pod_uid).is_dir():
        return
    root = find_kubelet_root(HOST_MOUNTS.read_text(), OWN_MOUNTS.read_text(), PurePosixPath(own_volume))
    right = root or "the --root-dir of this node's kubelet"
    raise ValueError(
        f"control_plane_kubelet_root is not the root directory of this node's kubelet: its directory of Pods lacks"
        f" this Pod ({pod_uid}). Set control_plane_kubelet_root to {right}"
    )


def find_kubelet_root(host_mounts: str, own_mounts: str, own_volume: PurePosixPath) -> str | None:
    """Return the kubelet's root directory as a path of the node, None if the mounts do not tell it.

    host_mounts, own_mounts: mountinfo of the node and of this container; own_volume: where an emptyDir is mounted,
    which is ROOT/pods/UID/volumes/kubernetes.io~empty-dir/NAME on the node.
    """
    own = [mount for mount in _parse(own_mounts) if mount.point == own_volume]
    candidates = [mount for mount in _parse(host_mounts) if own and _contains(mount, own[-1])]
    if not candidates:
        return None
    nearest = max(candidates, key=lambda mount: len(mount.root.parts))
    on_node = nearest.point / own[-1].root.relative_to(nearest.root)
    return str(on_node.parents[4]) if on_node.parts[-5:-4] == ("pods",) else None


def _contains(mount: Mount, other: Mount) -> bool:
    return mount.device == other.device and other.root.is_relative_to(mount.root)


def _parse(mountinfo: str) -> Iterator[Mount]:
    for line in mountinfo.splitlines():
        fields = line.split()
        if len(fields) > 4:
            yield Mount(fields[2], PurePosixPath(_unescape(fields[3])), PurePosixPath(_unescape(fields[4])))


def _unescape(path: str) -> str:
    """Undo the kernel's octal escapes of blanks and backslashes."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(escape, character)
    return path

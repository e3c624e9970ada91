# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requirements of a lab on its machine. All missing requirements are reported together."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection
from pathlib import Path

from lab.errors import LabError
from lab.machines.machine import CONTROL_PLANE
from lab.paths import STATE_ROOT

# program -> Debian's package
PROGRAMS = {
    "runc": "runc",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "losetup": "mount",
    "cp": "coreutils",
}
NEEDED_BYTES = 1 << 30
CONTROL_PLANE_INSTANCES, NODE_INSTANCES = 11, 10
"""inotify instances of a control plane (for its certificates), and of a node and what is deployed there (containerd,
kubelet, virt-node). The kernel limits them per user, and in all labs the user is root."""
_MORE_INSTANCES = 1024
_SEARCH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def check_machine(*, own: Collection[str] = ()) -> None:
    """Raise LabError with every problem and its remedy. own: programs that the user provides."""
    if problems := find_problems(own=own):
        raise LabError("this machine cannot run a lab yet:\n" + "\n".join(f"  - {problem}" for problem in problems))


def check_inotify(starting: Collection[str]) -> None:
    """Raise LabError if the kernel does not allow as many inotify instances as the machines use. starting: by name."""
    needed = sum(CONTROL_PLANE_INSTANCES if name == CONTROL_PLANE else NODE_INSTANCES for name in starting)
    if (free := free_instances(needed)) < needed:
        limit = Path("/proc/sys/fs/inotify/max_user_instances").read_text().strip()
        raise LabError(
            f"this machine cannot run another lab yet: it needs {needed} inotify instances, and {free} of {limit} are"
            f" free; allow more with `sysctl -w fs.inotify.max_user_instances={_MORE_INSTANCES}`, or remove other labs"
            " with `lab down --name NAME`"
        )


def free_instances(most: int) -> int:
    """Return how many inotify instances this user can still create, at most `most`: create them, and close them."""
    import ctypes  # noqa: PLC0415 - `lab node exec` imports this module for every task on a node

    library = ctypes.CDLL(None)
    created: list[int] = []
    try:
        while len(created) < most and (descriptor := library.inotify_init1(os.O_CLOEXEC)) >= 0:
            created.append(descriptor)
        return len(created)
    finally:
        for descriptor in created:
            os.close(descriptor)


def find_problems(*, own: Collection[str] = ()) -> list[str]:
    problems = []
    if sys.platform != "linux":
        return [f"it runs {sys.platform}; the lab needs Linux"]
    if os.geteuid() != 0:
        problems.append("you are not root, and namespaces, mounts and cgroups need it; run the same command with sudo")
    problems += _missing_programs(own)
    problems += _missing_kernel_features(Path("/proc"))
    existing = next(path for path in (STATE_ROOT, *STATE_ROOT.parents) if path.exists())
    if (free := shutil.disk_usage(existing).free) < NEEDED_BYTES:
        problems.append(f"{free >> 20} MiB free at {existing}, a lab needs {NEEDED_BYTES >> 20} MiB; free some space")
    return problems


def _missing_programs(own: Collection[str]) -> list[str]:
    required = {program: package for program, package in PROGRAMS.items() if program not in own}
    missing = {program: package for program, package in required.items() if not shutil.which(program, path=_SEARCH)}
    if not missing:
        return []
    packages = " ".join(sorted(set(missing.values())))
    return [f"programs are missing: {', '.join(sorted(missing))}; install them, on Debian: apt-get install {packages}"]


def _missing_kernel_features(proc: Path) -> list[str]:
    problems = []
    if "overlay" not in (proc / "filesystems").read_text().split() and not _can_load("overlay"):
        problems.append("the kernel has no overlayfs; use one with CONFIG_OVERLAY_FS (modprobe overlay)")
    problems += [
        f"the kernel has no {kind} namespaces; use a distribution's usual kernel"
        for kind in ("mnt", "pid", "net", "uts", "ipc", "cgroup")
        if not (proc / "self/ns" / kind).exists()
    ]
    if not any(" - cgroup" in line for line in (proc / "self/mountinfo").read_text().splitlines()):
        problems.append("no cgroup hierarchy is mounted; mount -t cgroup2 cgroup2 /sys/fs/cgroup")
    return problems


def _can_load(module: str) -> bool:
    """Tell whether the module is on disk. The kernel loads it at the first mount."""
    return any(Path("/lib/modules", os.uname().release).glob(f"kernel/fs/{module}*/{module}*.ko*"))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirtd in session mode: its directories, its settings and its process. libvirtd_restart.py keeps it running."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection

from controlplane.domain import layout
from controlplane.virt_launcher.files import write_file

SOCKET = "/".join((layout.RUN, *layout.LIBVIRT_SOCKET))

_QEMU_CONF = """\
# Otherwise libvirtd starts virtlogd, a process that is useless in a Pod with one guest.
stdio_handler = "file"
# libvirtd migrates a file without its content only if the directory is listed, or if the file system is one of the few
# that it knows.
shared_filesystems = {shared}
"""
_LIBVIRTD_CONF = """\
log_outputs = "3:stderr"
# A client that exits closes its Unix socket; clients that want keepalives send them.
keepalive_interval = -1
"""
_DIRECTORIES = ("cache", "config/libvirt", "disks", "libvirt", "lock", layout.MIGRATION_DIRECTORY)


def make_home(shared: Collection[str]) -> None:
    """Create the directories and settings of libvirtd and the domain in the emptyDir, because / is read-only.

    shared: directories with disks that the target of a migration mounts as well.
    """
    for name in _DIRECTORIES:
        os.makedirs(f"{layout.RUN}/{name}", mode=0o750, exist_ok=True)
    qemu_conf = _QEMU_CONF.format(shared=json.dumps([*shared]))
    write_file(f"{layout.RUN}/config/libvirt/qemu.conf", qemu_conf.encode())
    write_file(f"{layout.RUN}/config/libvirt/libvirtd.conf", _LIBVIRTD_CONF.encode())


def spawn() -> subprocess.Popen[bytes]:
    """Start libvirtd with a clean environment: the launcher's has variables of Services and of webhooks."""
    environment = {
        "HOME": layout.RUN,
        "LANG": "C",
        "PATH": "/usr/bin:/usr/sbin",
        "XDG_CACHE_HOME": f"{layout.RUN}/cache",
        "XDG_CONFIG_HOME": f"{layout.RUN}/config",
        "XDG_RUNTIME_DIR": layout.RUN,
    }
    command = ["/usr/sbin/libvirtd", "--config", f"{layout.RUN}/config/libvirt/libvirtd.conf"]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # signals to our process group must not reach it
    )

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates libvirt's QEMU capability cache, once per node, in a container of the launcher's image. No start waits for
it.

libvirt caches QEMU's capabilities in a file, and uses it only if the programs' ctimes are the same. The node sets them
when it unpacks the image, so the cache must be created on that node, from that image. This program runs libvirtd once
without and once with /dev/kvm (launchers exist with and without it) and writes emulation/*.xml and kvm/*.xml to the
given directory. virt-node copies them to the launchers. It also writes kvm/cpu.json, a description of the node's CPU,
which is used to choose a migration's target, and emulation/cpu.json, the CPU models that QEMU can emulate.

The files for emulation omit one flag: that QEMU reports each CPU feature as a property. libvirt then reads all features
by two queries, instead of one query per property: this saves 464 of the 478 queries of a start, 0.3 s of processor
time. It loses features that are not CPUID bits (model-specific registers), in a description that is not used: libvirt
never compares an emulated CPU with a host's. With KVM it does (it expands `host-model` feature by feature), so those
files are unchanged.

It never fails its Pod: without the files a start takes half a second longer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from controlplane.domain import layout
from controlplane.hypervisor.connection import Connection, open_connection, register_event_loop, socket_uri
from controlplane.hypervisor.errors import HypervisorError
from controlplane.process import logs

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 60.0
"""A second on an idle machine. Without its result the node has no labels of CPU models until virt-node is restarted."""
_KVM = "/dev/kvm"
_EMULATION, _WITH_KVM = "emulation", "kvm"
_EACH_PROPERTY = "<flag name='cpu-unavailable-features'/>"
_LIBVIRTD = "/usr/sbin/libvirtd"
# Defining a domain makes libvirt query QEMU. The domain is never started.
_PROBE = """<domain type='qemu'><name>probe</name><memory unit='MiB'>16</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>"""


def main(arguments: list[str]) -> int:
    """Fill the directory that is the only argument."""
    logs.configure("virt-launcher-capabilities")
    target = Path(arguments[0])
    if os.geteuid() == 0 and os.path.exists(_KVM) and _is_dev_private():
        # The container has a /dev of its own, so closing and opening /dev/kvm imitates both kinds of launchers.
        os.chmod(_KVM, 0o600)
        _attempt_as_launcher(target / _EMULATION)
        os.chmod(_KVM, 0o666)  # noqa: S103 - in this container only
    _attempt_as_launcher(target / (_WITH_KVM if _is_kvm_open() else _EMULATION))
    return 0


def _is_kvm_open() -> bool:
    return os.access(_KVM, os.R_OK | os.W_OK)


def _is_dev_private() -> bool:
    """Tell whether /dev is the container's tmpfs: the node's own devices must not be changed."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return any(fields[1] == "/dev" and fields[2] == "tmpfs" for fields in mounts)


def _attempt_as_launcher(target: Path) -> None:
    """Run _attempt in a child process, as uid 107 if this process is root, so that libvirtd runs as in a launcher.

    This process may be the container's PID 1. Then QEMU processes that libvirtd orphans become its children, and
    libvirtd waits until they are reaped.
    """
    target.mkdir(parents=True, exist_ok=True)
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(target, layout.UID, layout.UID)
    child = os.fork()
    if child == 0:
        if is_root:
            os.setgroups([])
            os.setgid(layout.UID)
            os.setuid(layout.UID)
        _attempt(target)
        os._exit(0)
    while os.wait()[0] != child:
        pass


def _attempt(target: Path) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="run-", dir=target, ignore_cleanup_errors=True) as run:
            cpu = asyncio.run(_probe(Path(run), with_kvm=target.name == _WITH_KVM))
            if cpu is not None:
                (target / layout.HOST_CPU).write_text(json.dumps(cpu))
            for path in Path(run).joinpath(*layout.CAPABILITY_CACHE).glob("*.xml"):
                cache = path.read_text()
                (target / path.name).write_text(without_each_property(cache) if target.name == _EMULATION else cache)
                log.info("capability cache created", extra={"kind": target.name, "file": path.name})
    except (OSError, HypervisorError, TimeoutError) as error:
        log.warning("no capability cache", extra={"kind": target.name, "error": str(error)})


def without_each_property(cache: str) -> str:
    """Remove the flag that makes libvirt query each CPU feature. A cache without it stays unchanged."""
    return "".join(line for line in cache.splitlines(keepends=True) if line.strip() != _EACH_PROPERTY)


async def _probe(run: Path, *, with_kvm: bool) -> dict[str, Any] | None:
    register_event_loop()
    async with asyncio.timeout(DEADLINE_SECONDS):
        daemon = await asyncio.create_subprocess_exec(
            _LIBVIRTD, env=_environment(run), stdin=asyncio.subprocess.DEVNULL
        )
        try:
            return await _define(str(run.joinpath(*layout.LIBVIRT_SOCKET)), with_kvm=with_kvm)
        finally:
            with suppress(ProcessLookupError):
                daemon.terminate()
            await daemon.wait()


async def _define(socket: str, *, with_kvm: bool) -> dict[str, Any] | None:
    while True:
        try:
            connection = await open_connection(socket_uri(socket))
            break
        except HypervisorError:
            await asyncio.sleep(0.02)  # libvirtd does not listen at once; the caller has a timeout
    try:
        await connection.define(_PROBE)
        return await _cpu(connection, with_kvm=with_kvm)
    finally:
        await connection.close()


async def _cpu(connection: Connection, *, with_kvm: bool) -> dict[str, Any] | None:
    try:
        return await (connection.host_cpu() if with_kvm else connection.emulated_cpu())
    except HypervisorError as error:
        log.warning("cannot read the description of the CPU", extra={"error": str(error)})
        return None


def _environment(run: Path) -> dict[str, str]:
    """The same directories as in a launcher, below another root."""
    return {
        "HOME": str(run),
        "XDG_RUNTIME_DIR": str(run),
        "XDG_CACHE_HOME": str(run / layout.CAPABILITY_CACHE[0]),
        "XDG_CONFIG_HOME": str(run / "config"),
        "PATH": "/usr/bin:/usr/sbin",
        "LANG": "C",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find out once per node what QEMU can do there, in a container of the launcher's own image; not on a VM's way.

libvirt keeps what it learnt about QEMU in a file, and believes it only where the programs' ctimes are the same. They
are set when the node unpacks the image, so the file can be made only on that node, from that image. This program runs
libvirtd once without and once with /dev/kvm (a launcher may have it or not) and leaves the files in the directory
that it is given: emulation/*.xml and kvm/*.xml. virt-handler gives copies of them to the launchers. With /dev/kvm it
also says what the node's processor is (kvm/cpu.json), by which a migration's target is chosen.

The files for emulation do not say that QEMU tells of each CPU feature by a property. libvirt then asks for all features
with two questions, instead of for each property with one: 464 of the 478 that a start has, 0.3 s of a processor. What
is lost are features that are no bits of CPUID (model-specific registers), in a description that nobody reads: an
emulated CPU is never compared with a host's. With KVM it is (`host-model` is written down feature by feature), so those
files are left as they are.

It never fails its Pod: without the files a VM starts half a second slower, and that is all.
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

DEADLINE_SECONDS = 20.0
_KVM = "/dev/kvm"
_EMULATION, _WITH_KVM = "emulation", "kvm"
_EACH_PROPERTY = "<flag name='cpu-unavailable-features'/>"
_LIBVIRTD = "/usr/sbin/libvirtd"
# Defining a domain makes libvirt ask QEMU what it can do. It is never started.
_PROBE = """<domain type='qemu'><name>probe</name><memory unit='MiB'>16</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>"""


def main(arguments: list[str]) -> int:
    """Fill the directory named by the one argument."""
    logs.configure("virt-launcher-capabilities")
    target = Path(arguments[0])
    if os.geteuid() == 0 and os.path.exists(_KVM) and _is_dev_private():
        # A /dev of the container's own: close and open /dev/kvm for uid 107 to be either kind of launcher.
        os.chmod(_KVM, 0o600)
        _attempt_as_launcher(target / _EMULATION)
        os.chmod(_KVM, 0o666)  # noqa: S103 - in this container only
    _attempt_as_launcher(target / (_WITH_KVM if _is_kvm_open() else _EMULATION))
    return 0


def _is_kvm_open() -> bool:
    return os.access(_KVM, os.R_OK | os.W_OK)


def _is_dev_private() -> bool:
    """Tell whether /dev is the container's tmpfs; the node's own devices are not to be changed."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return any(fields[1] == "/dev" and fields[2] == "tmpfs" for fields in mounts)


def _attempt_as_launcher(target: Path) -> None:
    """Attempt in a child, with uid 107 if that is ours to choose: libvirtd is to run as it does in a launcher.

    This process may be the container's first one. Then the QEMUs that libvirtd lets go of become ours, and libvirtd
    waits until they are reaped.
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
        with tempfile.TemporaryDirectory(prefix="run-", dir=target) as run:
            cpu = asyncio.run(_probe(Path(run), asks_for_cpu=target.name == _WITH_KVM))
            if cpu is not None:
                (target / layout.HOST_CPU).write_text(json.dumps(cpu))
            for one in Path(run).joinpath(*layout.CAPABILITY_CACHE).glob("*.xml"):
                said = one.read_text()
                (target / one.name).write_text(without_each_property(said) if target.name == _EMULATION else said)
                log.info("capabilities found", extra={"kind": target.name, "file": one.name})
    except (OSError, HypervisorError, TimeoutError) as error:
        log.warning("no capability cache", extra={"kind": target.name, "error": str(error)})


def without_each_property(said: str) -> str:
    """Return a cache by which libvirt asks for all CPU features at once; as it is where it has no such line."""
    return "".join(line for line in said.splitlines(keepends=True) if line.strip() != _EACH_PROPERTY)


async def _probe(run: Path, *, asks_for_cpu: bool) -> dict[str, Any] | None:
    register_event_loop()
    async with asyncio.timeout(DEADLINE_SECONDS):
        daemon = await asyncio.create_subprocess_exec(
            _LIBVIRTD, env=_environment(run), stdin=asyncio.subprocess.DEVNULL
        )
        try:
            return await _define(str(run.joinpath(*layout.LIBVIRT_SOCKET)), asks_for_cpu=asks_for_cpu)
        finally:
            with suppress(ProcessLookupError):
                daemon.terminate()
            await daemon.wait()


async def _define(socket: str, *, asks_for_cpu: bool) -> dict[str, Any] | None:
    while True:
        try:
            connection = await open_connection(socket_uri(socket))
            break
        except HypervisorError:
            await asyncio.sleep(0.02)  # it listens a moment after it was started; the deadline is the caller's
    try:
        await connection.define(_PROBE)
        return await _host_cpu(connection) if asks_for_cpu else None
    finally:
        await connection.close()


async def _host_cpu(connection: Connection) -> dict[str, Any] | None:
    try:
        return await connection.host_cpu()
    except HypervisorError as error:
        log.warning("it is not known what the processor is", extra={"error": str(error)})
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

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Domain and launcher Pod: nothing is probed, nothing is privileged, and nothing that a tenant wrote is trusted."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DISK = "controlplane/domain/builders/disk.py"
_CODEC = "controlplane/domain/codec.py"
_STATE = "controlplane/domain/state.py"
_CONTAINER_DISK = "controlplane/domain/volumes/container_disk.py"
_BY_DISK = (
    "tests/controlplane/domain/builders/test_disk.py",
    "tests/controlplane/domain/builders/test_domain.py",
)
_BY_CODEC = ("tests/controlplane/domain/test_codec.py",)
_BY_STATE = ("tests/controlplane/domain/test_state.py",)
_BY_VOLUMES = (
    "tests/controlplane/domain/volumes",
    "tests/controlplane/domain/builders/test_disk.py",
)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_STATE,
        line='    is_crash = state.life is Life.SHUT_OFF and state.reason == "crashed"\n',
        without="    is_crash = True\n",
        because="A guest that has survived its panic, and shuts down or runs, would have failed.",
        tests=_BY_STATE,
    ),
    Guard(
        file="controlplane/domain/builders/domain.py",
        line='"destroy" if vmi.spec.domain.reboot_policy == TERMINATE else "restart"',
        without='"destroy" if vmi.spec.domain.reboot_policy else "restart"',
        because="A machine that is to boot again would end its run.",
        tests=("tests/controlplane/domain/builders",),
    ),
    Guard(
        file=_DISK,
        line="        backing=_backing(image),",
        without="        backing=EndOfChain(),",
        because="A chain that is not written out is probed, and an image's header trusted.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_DISK,
        line="        return EndOfChain()\n    return BackingStore",
        without="        return EndOfChain()\n    return EndOfChain()\n    return BackingStore",
        because="A chain that is not written out is probed, and an image's header trusted.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_DISK,
        line="source=FileSource(file=below.path), below=EndOfChain()",
        without="source=FileSource(file=below.path), below=None",
        because="A chain whose end is not written is followed wherever an image says.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_DISK,
        line="type=image.format,",
        without='type="raw",',
        because="A format that is not the image's own shows the guest another disk.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_DISK,
        line="        if spec.name not in volumes:",
        without="        if False:",
        because="A disk without a volume must be refused with its name.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_DISK,
        line='            error_policy="stop",',
        without='            error_policy="ignore",',
        because="A disk that fails must stop its guest, not corrupt its files.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_DISK,
        line='    if spec.cache == "none" and not facts.report.direct_io:',
        without="    if False:",
        because="A cache mode that the storage cannot do must be refused with its name.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_DISK,
        line="        return spec.cdrom.readonly is not False",
        without="        return False",
        because="A CD is read-only unless it is said otherwise.",
        tests=_BY_DISK,
    ),
    Guard(
        file=_CONTAINER_DISK,
        line="        if found.volume == name:",
        without="        if True:",
        because="A volume must not get another volume's image.",
        tests=_BY_VOLUMES,
    ),
    Guard(
        file=_CODEC,
        line="    if bad := _REFUSED.search(word):",
        without="    if False:",
        because="A character that XML cannot carry must be refused, not sent to libvirt.",
        tests=_BY_CODEC,
    ),
    Guard(
        file=_STATE,
        line='        return self.life is Life.PAUSED and self.reason == "starting_up"',
        without="        return False",
        because="A QEMU that is being started may yet refuse: no guest has run.",
        tests=_BY_STATE,
    ),
    Guard(
        file=_STATE,
        line='        return "Failed" if is_acpi_expected else "Succeeded"',
        without='        return "Succeeded"',
        because="A guest that had to be destroyed did not obey.",
        tests=_BY_STATE,
    ),
    Guard(
        file=_STATE,
        line='"saved", "from_snapshot") else None',
        without='"saved", "from_snapshot", "migrated") else None',
        because="A run that goes on elsewhere has not ended.",
        tests=_BY_STATE,
    ),
    Guard(
        file=_STATE,
        line='    if state.reason == "crashed":\n        return "Failed"\n',
        without="",
        because="A guest that crashed must not be told as nothing.",
        tests=_BY_STATE,
    ),
)

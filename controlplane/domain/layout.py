# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things are inside a launcher Pod: one list for the controller, the handler and the launcher.

Paths only. A volume name is a DNS label (checked at admission and again here), so it is one path component.
"""

from __future__ import annotations

import re

UID = 107
"""The user and group that QEMU, libvirtd and the supervisor run as."""

HANDLER_UID = 60107
"""The user and group of virt-handler, which dials libvirtd. Not 107: tenants use up what a kernel counts by user."""

NODE_SOCKET = "/run/virtops/node/virt-node.sock"
"""On the node, in a directory that virt-node and virt-handler mount: where the one asks the other."""

RUN = "/run/launcher"
"""The emptyDir of every launcher Pod; the Pod volume is called RUN_VOLUME."""

RUN_VOLUME = "run"
LIBVIRT_SOCKET = ("libvirt", "libvirt-sock")
"""Path components below RUN of libvirtd's socket."""

PLAN_DIRECTORY, PLAN_FILE = "/run/launch-plan", "plan.json"
"""Where the kubelet puts the launch plan, an annotation of the Pod, for the launcher. Pod volume: PLAN_VOLUME."""

PLAN_VOLUME = "launch-plan"
REPORT = "report.json"
"""Below RUN: what the supervisor found in the images; see controlplane.api.launch_plan.LauncherReport."""

SERIAL_SOCKET = f"{RUN}/serial0.sock"
SERIAL_LOG = f"{RUN}/serial0.log"
PROBE_SOCKET = f"{RUN}/probe.sock"
"""Where the launcher answers probes that ask the guest's agent."""
VNC_SOCKET = f"{RUN}/vnc.sock"
MIGRATION_DIRECTORY = "mig"
"""Below RUN: where QEMU sends a guest to and takes one in, each of MIGRATION_SOCKETS."""

MIGRATION_SOCKETS = {
    "memory": (MIGRATION_DIRECTORY, "memory.sock"),
    "disks": (MIGRATION_DIRECTORY, "disks.sock"),
}
"""Path components below RUN, by channel of a migration."""

HANDLER_RUN = "/run/virtops/migration"
"""Where virt-handler makes sockets that nobody else sees."""

CAPABILITY_CACHE = ("cache", "libvirt", "qemu", "cache", "capabilities")
"""Path components below RUN of the directory of libvirt's QEMU capability cache."""
HOST_CPU = "cpu.json"
"""File beside a node's own caches: what its processor is, for guests that use it."""
QEMU_LOGS = f"{RUN}/cache/libvirt/qemu/log"
"""Where libvirt, in session mode, has QEMU's own messages."""

KERNEL_BOOT = "/img/kernel-boot"
"""Where the image of firmware.kernelBoot.container is mounted. Pod volume: KERNEL_BOOT_VOLUME."""

KERNEL_BOOT_VOLUME = "kernel-boot"
IMAGES = "/img/volumes"
CLAIMS = "/img/claims"
"""Where volumes of PersistentVolumeClaims are mounted; devices of those in mode Block are in /dev."""
DISKS = f"{RUN}/disks"
SECRETS = "/run/secrets/cloud-init"
BRIDGE = "k6t-eth0"
TAP = "tap0"
POD_INTERFACE = "eth0"

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _component(volume: str) -> str:
    if not _DNS_LABEL.fullmatch(volume):
        raise ValueError(f"volume name {volume!r} is not a DNS label")
    return volume


def pod_volume(volume: str) -> str:
    """Name the Pod volume of a VMI volume: prefixed, so that no user's name meets one of ours."""
    return f"vol-{_component(volume)}"[:63].rstrip("-")


def qemu_log(domain: str) -> str:
    """Return the file of QEMU's own messages, given the domain's name."""
    return f"{QEMU_LOGS}/{domain}.log"


def image_mount(volume: str) -> str:
    """Return where the image of a containerDisk is mounted."""
    return f"{IMAGES}/{_component(volume)}"


def claim_mount(volume: str) -> str:
    """Return where the volume of a claim is mounted."""
    return f"{CLAIMS}/{_component(volume)}"


def claim_file(volume: str) -> str:
    """Return the disk on the volume of a claim; the name is upstream's."""
    return f"{claim_mount(volume)}/disk.img"


def claim_device(volume: str) -> str:
    """Return the device of a claim in mode Block."""
    return f"/dev/{pod_volume(volume)}"


def migration_socket(channel: str) -> str:
    """Return where QEMU dials at a migration's source, and listens at its target."""
    return "/".join((RUN, *MIGRATION_SOCKETS[channel]))


def overlay(volume: str) -> str:
    """Return the qcow2 overlay that takes the guest's writes over a containerDisk."""
    return f"{DISKS}/{_component(volume)}.qcow2"


def sparse_disk(volume: str) -> str:
    """Return the raw sparse image of an emptyDisk."""
    return f"{DISKS}/{_component(volume)}.img"


def cloud_init_iso(volume: str) -> str:
    """Return the NoCloud seed of a cloudInitNoCloud volume."""
    return f"{DISKS}/{_component(volume)}.iso"


def cloud_init_secret(volume: str, part: str) -> str:
    """Return where the Secret with userdata or networkdata (part) of a volume is mounted."""
    return f"{SECRETS}/{_component(volume)}/{part}"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths inside a launcher Pod: one list for virt-controller, virt-handler, virt-node and virt-launcher.

A volume name is a DNS label (checked at admission and again here), so it is one path component.
"""

from __future__ import annotations

import re

UID = 107
"""User and group of QEMU, libvirtd and virt-launcher."""

HANDLER_UID = 60107
"""User and group of virt-handler. Not 107, because tenants can exhaust the kernel's limits per user."""

NODE_SOCKET = "/run/virtops/node/virt-node.sock"
"""virt-node's socket for virt-handler, in a directory of the node that both mount."""

RUN = "/run/launcher"
"""The emptyDir of every launcher Pod; its Pod volume is RUN_VOLUME."""

RUN_VOLUME = "run"
LIBVIRT_SOCKET = ("libvirt", "libvirt-sock")
"""Path components of libvirtd's socket below RUN."""

PLAN_DIRECTORY, PLAN_FILE = "/run/launch-plan", "plan.json"
"""The launch plan, which the kubelet copies from an annotation of the Pod. Pod volume: PLAN_VOLUME."""

PLAN_VOLUME = "launch-plan"
REPORT = "report.json"
"""Below RUN: the launcher's report, see controlplane.api.launch_plan.LauncherReport."""

GUEST_SOCKETS: dict[str, tuple[str, ...]] = {"serial": ("serial0.sock",), "vnc": ("vnc.sock",)}
"""Path components below RUN: where QEMU serves the serial console and the screen."""
SERIAL_SOCKET = "/".join((RUN, *GUEST_SOCKETS["serial"]))
SERIAL_LOG_NAME = "serial0.log"
"""Below RUN: what the guest has printed, as QEMU writes it. The last CONSOLE_BACKLOG_BYTES are kept."""
SERIAL_LOG = f"{RUN}/{SERIAL_LOG_NAME}"
CONSOLE_BACKLOG_BYTES = 64 * 1024
"""What a console session can begin with."""
PROBE_SOCKET = f"{RUN}/probe.sock"
"""Where the launcher answers probes."""
VNC_SOCKET = "/".join((RUN, *GUEST_SOCKETS["vnc"]))
MIGRATION_DIRECTORY = "mig"
"""Below RUN: directory of MIGRATION_SOCKETS, to which QEMU connects at the source, and listens at the target."""

MIGRATION_SOCKETS = {
    "memory": (MIGRATION_DIRECTORY, "memory.sock"),
    "disks": (MIGRATION_DIRECTORY, "disks.sock"),
}
"""Path components below RUN, by channel of a migration."""

HANDLER_RUN = "/run/virtops/migration"
"""Directory of virt-handler's own sockets."""

CAPABILITY_CACHE = ("cache", "libvirt", "qemu", "cache", "capabilities")
"""Path components of libvirt's QEMU capability cache below RUN."""
HOST_CPU = "cpu.json"
"""File beside a node's capability cache: its processor as guests with KVM see it."""
QEMU_LOGS = f"{RUN}/cache/libvirt/qemu/log"
"""Where libvirt in session mode writes QEMU's own messages."""

KERNEL_BOOT = "/img/kernel-boot"
"""Mount of the image of firmware.kernelBoot.container. Pod volume: KERNEL_BOOT_VOLUME."""

KERNEL_BOOT_VOLUME = "kernel-boot"
IMAGES = "/img/volumes"
CLAIMS = "/img/claims"
"""Mounts of claims; devices of claims in mode Block are in /dev."""
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
    """Return the Pod volume of a VMI volume. The prefix keeps users' names apart from ours."""
    return f"vol-{_component(volume)}"[:63].rstrip("-")


def qemu_log(domain: str) -> str:
    """Return the file of QEMU's own messages. domain: its name."""
    return f"{QEMU_LOGS}/{domain}.log"


def image_mount(volume: str) -> str:
    """Return the mount of a containerDisk's image."""
    return f"{IMAGES}/{_component(volume)}"


def claim_mount(volume: str) -> str:
    """Return the mount of a claim's volume."""
    return f"{CLAIMS}/{_component(volume)}"


def claim_file(volume: str) -> str:
    """Return the disk on a claim's volume; the name is upstream's."""
    return f"{claim_mount(volume)}/disk.img"


def claim_device(volume: str) -> str:
    """Return the device of a claim in mode Block."""
    return f"/dev/{pod_volume(volume)}"


def migration_socket(channel: str) -> str:
    """Return the socket to which QEMU connects at a migration's source, and on which it listens at the target."""
    return "/".join((RUN, *MIGRATION_SOCKETS[channel]))


def overlay(volume: str) -> str:
    """Return the qcow2 overlay for the guest's writes to a containerDisk."""
    return f"{DISKS}/{_component(volume)}.qcow2"


def sparse_disk(volume: str) -> str:
    """Return the raw sparse image of an emptyDisk."""
    return f"{DISKS}/{_component(volume)}.img"


def cloud_init_iso(volume: str) -> str:
    """Return the NoCloud seed of a cloudInitNoCloud volume."""
    return f"{DISKS}/{_component(volume)}.iso"


def cloud_init_secret(volume: str, part: str) -> str:
    """Return the mount of a volume's Secret. part: userdata or networkdata."""
    return f"{SECRETS}/{_component(volume)}/{part}"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks on PersistentVolumeClaims: that they are waited for, and that nobody's data is touched."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CLAIM = "controlplane/virt_launcher/claim.py"
_DECIDE = "controlplane/virt_controller/vmi/decide.py"
_PLAN = "controlplane/api/launch_plan.py"
_WAKE = "controlplane/virt_controller/wake.py"
_CLAIMS = "controlplane/virt_controller/claims.py"
_RULES = "controlplane/api/admission/validate/storage.py"
_BY_CLAIM = ("tests/controlplane/virt_launcher/test_claim.py",)
_BY_CLAIMS = ("tests/controlplane/virt_controller/test_claims.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_CLAIM,
        line="    flags = os.O_RDONLY if plan.is_read_only else os.O_RDWR | os.O_CREAT\n    try:\n"
        "        descriptor = os.open(path, flags | os.O_NOFOLLOW |",
        without="    flags = os.O_RDONLY if plan.is_read_only else os.O_RDWR | os.O_CREAT\n    try:\n"
        "        descriptor = os.open(path, flags |",
        because="Whoever fills the volume would have the launcher open, and stretch, a file of its own choice.",
        tests=_BY_CLAIM,
    ),
    Guard(
        file=_CLAIM,
        line="        if not stat.S_ISREG(found.st_mode):",
        without="        if False:",
        because="A pipe called disk.img would hang QEMU.",
        tests=_BY_CLAIM,
    ),
    Guard(
        file=_CLAIM,
        line="    if plan.is_read_only or (plan.is_shared and found.st_size):",
        without="    if plan.is_read_only:",
        because="A disk that another node's guest has open would change its size under it.",
        tests=_BY_CLAIM,
    ),
    Guard(
        file=_CLAIM,
        line="    if size > found.st_size:",
        without="    if True:",
        because="A disk that is larger than its claim would lose its end, with what is on it.",
        tests=_BY_CLAIM,
    ),
    Guard(
        file=_CLAIM,
        line="    if not found.st_size and size < max(plan.size_bytes * LEAST_SHARE, MIB):",
        without="    if False:",
        because="A guest would get a disk much smaller than what its claim asks for, and nobody would say so.",
        tests=_BY_CLAIM,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.missing_claims:",
        without="    if False:",
        because="What a claim is decides what the Pod looks like, and a Pod cannot be changed.",
        tests=("tests/controlplane/virt_controller/vmi/test_decide.py",),
    ),
    Guard(
        file=_PLAN,
        line="any(not isinstance(one, str) or one not in claims for one in listed)",
        without="False",
        because="A launcher's report would choose which of its disks are devices.",
        tests=("tests/controlplane/api/test_launch_plan.py",),
    ),
    Guard(
        file=_WAKE,
        line="        for vm in list(vms.indexed(BY_CLAIM, str(key))):\n            wake_vm(vm)\n",
        without="",
        because="A VM would say that it waits for a volume that it has.",
        tests=_BY_CLAIMS,
    ),
    Guard(
        file=_WAKE,
        line="        for vmi in list(vmis.indexed(BY_CLAIM, str(key))):\n            wake_vmi(vmi)\n",
        without="",
        because="A machine whose claim was made late would wait for ever.",
        tests=_BY_CLAIMS,
    ),
    Guard(
        file=_CLAIMS,
        line="            if claim.metadata.deletion_timestamp is None:",
        without="            if True:",
        because="A new Pod would wait for a claim that is going, and keep it from going.",
        tests=_BY_CLAIMS,
    ),
    Guard(
        file=_RULES,
        line='        if name in first:\n            text = f"{excerpt(name)} is already used by',
        without='        if False:\n            text = f"{excerpt(name)} is already used by',
        because="QEMU refuses a disk that it has open already, long after the machine was let in.",
        tests=("tests/controlplane/api/admission/test_verdict.py",),
    ),
    Guard(
        file="controlplane/domain/volumes/persistent_volume_claim.py",
        line='"raw", is_block=True, is_read_only=source.read_only)',
        without='"raw", is_block=True)',
        because="A guest would write to a device that it was given to read: it has no mount that keeps it from that.",
        tests=("tests/controlplane/domain/volumes/test_registry.py",),
    ),
    Guard(
        file=_WAKE,
        line=", claim.is_bound, controller_of(claim.metadata)",
        without=", claim.is_bound",
        because="Who waits for a DataVolume to let go of its claim would wait for ever.",
        tests=_BY_CLAIMS,
    ),
)

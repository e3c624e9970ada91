# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launch plan, from virt-controller to virt-launcher, and virt-launcher's report. Standard library only.

The plan is JSON in an annotation of the Pod, which the kubelet gives to the launcher as a file: it needs no further
object, and is not in any process's environment. The report is a file in the launcher's emptyDir. It is written
atomically when the disks are ready, and virt-node opens libvirtd's socket only after it exists. It comes from a
tenant's Pod: readers limit its size (REPORT_LIMIT_BYTES), and accept only enumerations, and paths below the volume's
own mount (see `parse_report`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

PLAN_ANNOTATION = "kubevirt.io/launch-plan"
"""On launcher Pods. An admission policy lets only virt-controller write it."""
PLAN_LIMIT_BYTES = 192 * 1024
"""All annotations of an object share 256 KiB. Plans of admitted VMIs fit; see TEXT_LIMIT_BYTES."""
TEXT_LIMIT_BYTES = 48 * 1024
"""Limit of users' texts in a plan (inline cloud-init, paths) as JSON. Our own names and paths use the rest."""
REPORT_LIMIT_BYTES = 65536
NETWORK_ANNOTATION = "virtops.kubevirt/guest-network"
"""On launcher Pods: the GuestNetwork. Caches drop the plan, so virt-handler reads the network here."""
VERSION = 1
NOT_IN_TIME = "the guest did not shut down within its grace period and was ended"
KERNEL_PANICKED = "the guest's kernel panicked"
WATCHDOG_EXPIRED = "the guest's watchdog expired, which was to end its run"
"""Termination messages of launchers. virt-handler uses the same texts."""
CRASHES = {"panicked": KERNEL_PANICKED, "watchdog": WATCHDOG_EXPIRED}
"""Termination messages by cause of the crash."""


@dataclass(frozen=True, slots=True)
class ContainerDisk:
    """An image volume to be covered with a writable overlay."""

    volume: str
    path: str = ""
    """Absolute path of the image file inside the container image; "" means the one file in /disk."""


@dataclass(frozen=True, slots=True)
class EmptyDisk:
    """A sparse raw image."""

    volume: str
    capacity_bytes: int


@dataclass(frozen=True, slots=True)
class CloudInit:
    """A NoCloud seed. Each part is given inline, or as the path of a mounted Secret's key, or not at all."""

    volume: str
    meta_data: str
    """YAML text with instance-id and local-hostname."""
    user_data: str | None = field(default=None, repr=False)
    user_data_file: str | None = None
    network_data: str | None = field(default=None, repr=False)
    network_data_file: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimDisk:
    """The disk on a PersistentVolumeClaim. The launcher finds or creates it."""

    volume: str
    is_block: bool
    """A device; else a directory with disk.img."""
    size_bytes: int
    """The requested size of the claim."""
    is_read_only: bool
    is_shared: bool
    """Other Pods may open it at the same time."""


DiskSource = ContainerDisk | EmptyDisk | CloudInit | ClaimDisk
"""What the launcher prepares for a volume before the domain exists."""
_STEPS: dict[str, type[DiskSource]] = {
    "container_disks": ContainerDisk,
    "empty_disks": EmptyDisk,
    "cloud_init": CloudInit,
    "claim_disks": ClaimDisk,
}
"""The field of LaunchPlan for each type of step."""


@dataclass(frozen=True, slots=True)
class GuestNetwork:
    """The guest's interface on the Pod network. virt-controller decides it; every other process reads it here."""

    interface: str
    """Its name in the VMI."""
    mac: str
    """The guest's address, spelled as libvirt does."""
    cidr: str
    """The network between Pod and guest, e.g. 10.0.2.0/24."""


@dataclass(frozen=True, slots=True)
class Dhcp:
    """The one lease that the launcher's DHCP server gives, to the guest's MAC only."""

    bridge: str
    mac: str
    address: str
    """The guest's address with prefix length, e.g. 10.0.2.2/24."""
    router: str
    mtu: int | None
    """None: take the bridge's."""
    hostname: str
    service_domain: str = ""
    """Domain of the machine's subdomain without that of the cluster, e.g. vms.default.svc; "" without a subdomain."""


@dataclass(frozen=True, slots=True)
class AgentProbe:
    """A question for the guest agent. The launcher sends it when the kubelet runs the probe."""

    name: str
    """livenessProbe or readinessProbe. startupProbe only checks that the guest runs, without its agent."""
    command: tuple[str, ...]
    """Run in the guest, without a shell; () only asks whether the agent answers."""
    timeout_seconds: int


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Everything a launcher needs to know before a domain exists."""

    domain: str
    """The libvirt domain's name: the VMI's UID."""
    title: str
    """namespace/name of the VMI, for log lines."""
    grace_period_seconds: int
    container_disk_limit_bytes: int
    """Limit of an image's disk size. The overlay can grow to this size, and the Pod has no more space."""
    container_disks: tuple[ContainerDisk, ...] = ()
    empty_disks: tuple[EmptyDisk, ...] = ()
    cloud_init: tuple[CloudInit, ...] = ()
    claim_disks: tuple[ClaimDisk, ...] = ()
    dhcp: Dhcp | None = None
    probes: tuple[AgentProbe, ...] = ()
    version: int = VERSION


def group_disk_sources(steps: Iterable[DiskSource]) -> dict[str, Any]:
    """Group steps by the field of LaunchPlan for their type."""
    entries = tuple(steps)
    return {member: tuple(entry for entry in entries if isinstance(entry, kind)) for member, kind in _STEPS.items()}


def render_plan(plan: LaunchPlan) -> str:
    """Serialise a plan; equal plans give equal bytes. ValueError when it is too long for an annotation."""
    text = json.dumps(asdict(plan), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    if (size := len(text.encode())) > PLAN_LIMIT_BYTES:
        raise ValueError(
            f"the launch plan has {size} bytes, at most {PLAN_LIMIT_BYTES} fit; put cloud-init data into Secrets"
        )
    return text


def parse_plan(data: bytes) -> LaunchPlan:
    """Parse a plan. ValueError says what is wrong."""
    if len(data) > PLAN_LIMIT_BYTES:
        raise ValueError(f"launch plan has more than {PLAN_LIMIT_BYTES} bytes")
    raw = _parse_json(data, "launch plan")
    if not isinstance(raw, dict) or raw.get("version") != VERSION:
        raise ValueError(f"launch plan is not of version {VERSION}")
    try:
        dhcp = raw.pop("dhcp", None)
        return LaunchPlan(
            **{
                **raw,
                **{member: tuple(kind(**entry) for entry in raw.pop(member, ())) for member, kind in _STEPS.items()},
                "probes": tuple(
                    AgentProbe(**{**entry, "command": tuple(entry["command"])}) for entry in raw.pop("probes", ())
                ),
                "dhcp": None if dhcp is None else Dhcp(**dhcp),
            }
        )
    except (TypeError, KeyError) as error:
        raise ValueError(f"launch plan does not fit: {error}") from error


def render_network(network: GuestNetwork) -> str:
    """Serialise a guest's network; equal networks give equal bytes."""
    return json.dumps(asdict(network), separators=(",", ":"), sort_keys=True)


def read_network(text: str) -> GuestNetwork | None:
    """Parse a guest's network. None when it is absent (Pods of older versions) or unreadable."""
    try:
        raw = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    values = [raw.get(name) for name in ("interface", "mac", "cidr")] if isinstance(raw, dict) else []
    texts = [value for value in values if isinstance(value, str)]
    return GuestNetwork(*texts) if len(texts) == 3 else None


@dataclass(frozen=True, slots=True)
class ImageFile:
    """The image file found in a containerDisk."""

    volume: str
    path: str
    """Absolute, below controlplane.domain.layout.image_mount(volume)."""
    format: Literal["raw", "qcow2"]


@dataclass(frozen=True, slots=True)
class LauncherReport:
    """What the supervisor found and prepared."""

    container_disks: tuple[ImageFile, ...] = ()
    direct_io: bool = True
    """O_DIRECT works on the emptyDir, on every image found, and on every claim."""
    block_claims: tuple[str, ...] = ()
    """Volumes of claims that are devices."""
    version: int = VERSION


def render_report(report: LauncherReport) -> str:
    """Serialise a report."""
    return json.dumps(asdict(report), separators=(",", ":"), sort_keys=True)


def parse_report(data: bytes, *, mounts: dict[str, str], claims: Collection[str] = ()) -> LauncherReport:
    """Parse a report from a tenant's Pod. ValueError says why it is refused.

    claims: volumes of claims; only these may be devices. mounts: by expected volume, where its image is mounted. Each
    expected volume must occur exactly once, and no other. Each path must be below its mount, without dot segments or
    control characters.
    """
    if len(data) > REPORT_LIMIT_BYTES:
        raise ValueError(f"launcher report has {len(data)} bytes, at most {REPORT_LIMIT_BYTES} are read")
    raw = _parse_json(data, "launcher report")
    if not isinstance(raw, dict) or raw.get("version") != VERSION or not isinstance(raw.get("container_disks"), list):
        raise ValueError(f"launcher report is not of version {VERSION}")
    images = tuple(_found_disk(entry, mounts) for entry in raw["container_disks"])
    if sorted(disk.volume for disk in images) != sorted(mounts):
        raise ValueError("launcher report does not list exactly the expected volumes")
    return LauncherReport(
        images, direct_io=raw.get("direct_io") is not False, block_claims=_block_claims(raw.get("block_claims"), claims)
    )


def _block_claims(raw: Any, claims: Collection[str]) -> tuple[str, ...]:
    volumes = [] if raw is None else raw
    if not isinstance(volumes, list) or any(not isinstance(entry, str) or entry not in claims for entry in volumes):
        raise ValueError("launcher report names a device that is no volume of a claim")
    return tuple(volumes)


def _parse_json(data: bytes, what: str) -> Any:
    """Parse untrusted JSON. Deep nesting raises RecursionError in Python, which callers do not expect."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError(f"{what} is nested too deeply") from error


def _found_disk(raw: Any, mounts: dict[str, str]) -> ImageFile:
    if not isinstance(raw, dict):
        raise ValueError("launcher report has an entry that is not an object")
    volume, path, form = raw.get("volume"), raw.get("path"), raw.get("format")
    if not isinstance(volume, str) or volume not in mounts:
        raise ValueError("launcher report names an unexpected volume")
    if form not in ("raw", "qcow2"):
        raise ValueError(f"launcher report has an unknown format for volume {volume}")
    is_below = isinstance(path, str) and path.startswith(mounts[volume] + "/") and path.isprintable()
    if not isinstance(path, str) or not is_below or {"", ".", ".."} & set(path[1:].split("/")):
        raise ValueError(f"launcher report has a path outside the image of volume {volume}")
    return ImageFile(volume, path, form)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launch plan of a VMI: what the launcher must know before a domain exists. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re

from controlplane.api.launch_plan import CloudInit, ContainerDisk, Dhcp, EmptyDisk, Plan
from controlplane.api.objects import quantity
from controlplane.api.objects.vmi.instance import CloudInitNoCloud, VirtualMachineInstance
from controlplane.domain import layout
from controlplane.domain.mac import guest_mac
from controlplane.domain.network import masquerade_network

USER_DATA = "userdata"
NETWORK_DATA = "networkdata"


def build_plan(vmi: VirtualMachineInstance) -> Plan:
    """Build the plan. ValueError names what in the spec cannot be planned."""
    volumes = vmi.spec.volumes
    return Plan(
        domain=vmi.metadata.uid,
        title=f"{vmi.metadata.namespace}/{vmi.metadata.name}",
        grace_period_seconds=vmi.spec.grace_period_seconds,
        container_disks=tuple(
            ContainerDisk(one.name, one.container_disk.path) for one in volumes if one.container_disk is not None
        ),
        empty_disks=tuple(
            EmptyDisk(one.name, quantity.to_bytes(one.empty_disk.capacity)) for one in volumes if one.empty_disk
        ),
        cloud_init=tuple(
            _cloud_init(vmi, one.name, one.cloud_init_no_cloud) for one in volumes if one.cloud_init_no_cloud
        ),
        dhcp=_dhcp(vmi),
    )


def guest_hostname(vmi: VirtualMachineInstance) -> str:
    """Return the name that the guest is told: one label of at most 63 characters."""
    first = (vmi.spec.hostname or vmi.metadata.name).split(".")[0].lower()
    return re.sub(r"[^a-z0-9-]", "-", first)[:63].strip("-") or "vm"


def _dhcp(vmi: VirtualMachineInstance) -> Dhcp | None:
    interface = next((one for one in vmi.spec.domain.devices.interfaces if one.masquerade is not None), None)
    if interface is None:
        return None
    pods = {one.name: one.pod for one in vmi.spec.networks if one.pod is not None}
    named = pods.get(interface.name)
    network = masquerade_network(named.vm_network_cidr if named else None)
    subdomain = vmi.spec.subdomain
    return Dhcp(
        bridge=layout.BRIDGE,
        mac=guest_mac(vmi.metadata.uid, interface.name, interface.mac_address or None),
        address=str(network.guest_interface),
        router=str(network.gateway),
        mtu=None,
        hostname=guest_hostname(vmi),
        search=(f"{subdomain}.{vmi.metadata.namespace}.svc.cluster.local",) if subdomain else (),
    )


def _cloud_init(vmi: VirtualMachineInstance, volume: str, source: CloudInitNoCloud) -> CloudInit:
    firmware = vmi.spec.domain.firmware
    identity = firmware.uuid if firmware and firmware.uuid else vmi.metadata.uid
    return CloudInit(
        volume=volume,
        # JSON is YAML, and cannot be broken out of by a name.
        meta_data=json.dumps({"instance-id": identity, "local-hostname": guest_hostname(vmi)}),
        user_data=_inline(volume, "userDataBase64", source.user_data, source.user_data_base64),
        user_data_file=_mounted(volume, USER_DATA) if source.secret_ref else None,
        network_data=_inline(volume, "networkDataBase64", source.network_data, source.network_data_base64),
        network_data_file=_mounted(volume, NETWORK_DATA) if source.network_data_secret_ref else None,
    )


def _inline(volume: str, member: str, text: str, encoded: str) -> str | None:
    if not encoded:
        return text or None
    try:
        return base64.b64decode("".join(encoded.split()), validate=True).decode()  # YAML blocks end in a newline
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"volume {volume}: {member} is not base64 of UTF-8 text; use a Secret for other data"
        ) from error


def _mounted(volume: str, part: str) -> str:
    return f"{layout.cloud_init_secret(volume, part)}/{part}"

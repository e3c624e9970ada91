# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One launch of a VMI: all derived values that the Pod's builder needs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from controlplane.api.cpu_labels import of_model
from controlplane.api.launch_plan import Dhcp, GuestNetwork, LaunchPlan, group_disk_sources
from controlplane.api.log_level import configured_level
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.guest_memory import GuestMemory, amount_in_bytes, guest_memory
from controlplane.api.objects.kubevirt import KubeVirtConfiguration, SeccompConfiguration
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import VIRTUAL_MACHINE
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.vmi_label import vmi_label_value
from controlplane.domain import layout
from controlplane.domain.guest_identity import GuestIdentity, guest_identity
from controlplane.domain.mac import guest_mac
from controlplane.domain.network import masquerade_network
from controlplane.domain.volumes.kind import Mounted
from controlplane.domain.volumes.registry import NO_CLAIMS, volumes_in_plan, volumes_in_pod
from controlplane.virt_controller.vmi.disk_space import container_disk_limit, derive_disk_space
from controlplane.virt_controller.vmi.probes import agent_probes, build_probes
from controlplane.virt_controller.vmi.resources import build_resources
from controlplane.virt_controller.vmi.world import pod_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The input of the Pod's builder, in addition to the VMI."""

    pod_name: str
    vmi_label_value: str
    """The VMI's name as a label value."""
    guest: GuestIdentity
    plan: LaunchPlan
    network: GuestNetwork | None
    """None: the machine has no interface on the Pod network."""
    memory: GuestMemory
    resources: dict[str, Any]
    """Requests and limits of the compute container."""
    run_bytes: int
    """Size of the directory that the launcher and its guest write to."""
    mounted: tuple[Mounted, ...]
    """The Pod's volumes for the machine's volumes."""
    pull_secrets: tuple[str, ...]
    image: str
    """The launcher image."""
    pull_policy: str
    probes: dict[str, Any]
    """Probes of the compute container."""
    log_level: str | None
    """The configured log level of the launcher; None: its own."""
    seccomp: dict[str, str]
    """The seccomp profile of the Pod."""
    cpu_labels: dict[str, str]
    """Labels of nodes whose processor can have the guest's CPU model; none if it is emulated, as every node can."""


def derive_launch(
    vmi: VirtualMachineInstance,
    *,
    attempt: int,
    image: str,
    configuration: KubeVirtConfiguration,
    image_pull_secrets: tuple[str, ...] = (),
    claims: Claims = NO_CLAIMS,
    is_target: bool = False,
) -> Launch:
    """Derive a launch. Raises ValueError with the part of the VMI that cannot be built.

    is_target: the guest arrives by a migration.
    """
    guest, volumes = guest_identity(vmi), volumes_in_pod(vmi.spec, claims)
    network = guest_network(vmi, is_target=is_target)
    space, memory = derive_disk_space(vmi.spec, configuration), guest_memory(vmi.spec.domain)
    developer, cpu = configuration.developer_configuration, vmi.spec.domain.cpu
    return Launch(
        pod_name=pod_name(vmi, attempt),
        vmi_label_value=vmi_label_value(vmi.metadata.name),
        guest=guest,
        plan=build_plan(vmi, guest, container_disk_limit(configuration), claims, network=network, is_target=is_target),
        network=network,
        memory=memory,
        resources=build_resources(vmi.spec.domain, memory, developer, space, _excess_bytes(vmi, memory)),
        run_bytes=space.run,
        mounted=tuple(mounted for volume in volumes for mounted in volume.mounted),
        pull_secrets=tuple(sorted({*image_pull_secrets, *(volume.pull_secret for volume in volumes)} - {""})),
        image=image,
        pull_policy=configuration.image_pull_policy or "IfNotPresent",
        probes=build_probes(vmi.spec, is_target=is_target),
        log_level=configured_level(developer.log_verbosity, "virt-launcher"),
        seccomp=_seccomp_profile(configuration.seccomp_configuration),
        cpu_labels={} if developer.use_emulation or cpu is None else of_model(cpu.model),
    )


def _seccomp_profile(config: SeccompConfiguration) -> dict[str, str]:
    profile = config.virtual_machine_instance_profile
    custom = None if profile is None else profile.custom_profile
    if custom is None or not custom.localhost_profile:
        return {"type": "RuntimeDefault"}
    return {"type": "Localhost", "localhostProfile": custom.localhost_profile}


def build_plan(
    vmi: VirtualMachineInstance,
    guest: GuestIdentity,
    largest_container_disk: int,
    claims: Claims = NO_CLAIMS,
    *,
    network: GuestNetwork | None = None,
    is_target: bool = False,
) -> LaunchPlan:
    """Build the launch plan: what the launcher needs before a domain exists.

    Raises ValueError with the part that cannot be planned.
    """
    return LaunchPlan(
        domain=vmi.metadata.uid,
        title=f"{vmi.metadata.namespace}/{vmi.metadata.name}",
        grace_period_seconds=vmi.spec.grace_period_seconds,
        container_disk_limit_bytes=largest_container_disk,
        dhcp=None if network is None else _dhcp(vmi, guest, network),
        probes=agent_probes(vmi.spec, is_target=is_target),
        **group_disk_sources(volumes_in_plan(vmi.spec, guest, claims)),
    )


def guest_network(vmi: VirtualMachineInstance, *, is_target: bool) -> GuestNetwork | None:
    """Return the guest's address and network; None without an interface. Raises ValueError if one of them is invalid.

    A migrating guest keeps the address in its status: another version may have derived it in another way.
    """
    interface = next(
        (interface for interface in vmi.spec.domain.devices.interfaces if interface.masquerade is not None), None
    )
    if interface is None:
        return None
    pods = {network.name: network.pod for network in vmi.spec.networks if network.pod is not None}
    pod_network = pods.get(interface.name)
    reported = _reported_mac(vmi, interface.name) if is_target else ""
    mac = guest_mac(_machine_uid(vmi), interface.name, interface.mac_address or reported or None)
    return GuestNetwork(
        interface.name, mac, str(masquerade_network(pod_network.vm_network_cidr if pod_network else None).network)
    )


def _machine_uid(vmi: VirtualMachineInstance) -> str:
    """Return the UID that is the same in all runs: the VM's UID, or the VMI's if there is no VM."""
    owner = controller_of(vmi.metadata)
    is_vm = owner is not None and owner.kind == VIRTUAL_MACHINE.kind and owner.api_version.startswith("kubevirt.io/")
    return owner.uid if owner is not None and is_vm else vmi.metadata.uid


def _reported_mac(vmi: VirtualMachineInstance, interface: str) -> str:
    return next((reported.mac for reported in vmi.status.interfaces if reported.name == interface), "")


def _dhcp(vmi: VirtualMachineInstance, guest: GuestIdentity, network: GuestNetwork) -> Dhcp:
    addresses, subdomain = masquerade_network(network.cidr), vmi.spec.subdomain
    return Dhcp(
        bridge=layout.BRIDGE,
        mac=network.mac,
        address=str(addresses.guest_interface),
        router=str(addresses.gateway),
        mtu=None,
        hostname=guest.hostname,
        service_domain=f"{subdomain}.{vmi.metadata.namespace}.svc" if subdomain else "",
    )


def _excess_bytes(vmi: VirtualMachineInstance, memory: GuestMemory) -> int:
    """Return the memory that a guest may have now, in bytes, if that is more than its spec has; else 0."""
    status = vmi.status.memory
    current = (
        0 if status is None else max(amount_in_bytes(status.guest_requested), amount_in_bytes(status.guest_current))
    )
    current = min(current, memory.most)
    return current if current > memory.guest else 0

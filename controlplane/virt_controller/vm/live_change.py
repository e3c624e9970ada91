# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes of a template are written into the running VMI, and why others are not: pure.

As in KubeVirt, a change is written only if no other field has changed: the VMI has a hash of the other fields, and a
change that needs a restart waits as a whole. Nothing is written during a migration, because its target Pod was built
from the current spec. A change of sockets waits until the former change is done, because sockets cannot be unplugged. A
change of memory does not wait: otherwise one that fits no node could never be corrected.
"""

from __future__ import annotations

from typing import Any

from kubevirt_api import condition_types
from kubevirt_api.names import CPUS_ADDED, FIXED_TEMPLATE_HASH, TEMPLATE_HASH

from controlplane.api.admission.defaults import default_instance
from controlplane.api.objects import conditions, quantity
from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.kubevirt import STAGE
from controlplane.api.objects.meta import Quantity
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.vmi.domain import Cpu, DomainSpec, Resources
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceSpec
from controlplane.engine.patch import merge_patch
from controlplane.virt_controller.hotplug.cpu import cpu_change
from controlplane.virt_controller.vm.live_memory import added_memory, merged, refuse_memory, with_memory
from controlplane.virt_controller.vm.template import fixed_hash, former_fixed_hash, plain_template, template_hash
from controlplane.virt_controller.vm.vmi_manifest import build_vmi
from controlplane.virt_controller.vm.world import World

Json = dict[str, Any]


def next_run(world: World) -> VirtualMachineInstanceSpec:
    """Return the spec of a VMI created now."""
    manifest = build_vmi(world.vm, world.template)
    return decode_vmi(default_instance(manifest, world.configuration, seed=world.vm.metadata.uid)).spec


def is_only_live(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether all changes of the template can be made while the VMI runs."""
    if world.configuration.vm_rollout_strategy == STAGE or own.status.phase != RUNNING:
        return False
    made_from = own.metadata.annotations.get(FIXED_TEMPLATE_HASH)
    return made_from in (fixed_hash(world.template), former_fixed_hash(world.template))


def refuse_sockets(world: World, own: VirtualMachineInstance) -> str:
    """Return why the guest cannot get the template's sockets while it runs; "" if it can or has them."""
    current, wanted = _cpu(own.spec), _cpu(next_run(world))
    sockets, maximum = max(wanted.sockets, 1), current.max_sockets
    if sockets == max(current.sockets, 1):
        return ""
    features, migratable = (
        own.spec.domain.features,
        conditions.find(own.status.conditions, condition_types.LIVE_MIGRATABLE),
    )
    reasons = {
        "none can be removed while it runs": sockets < max(current.sockets, 1),
        f"it can have {maximum} at most while it runs (maxSockets)"
        if maximum
        else "it was started without room for more": sockets > maximum,
        "a guest without ACPI does not notice more": features is not None and features.acpi.enabled is False,
        "it gets more by a migration, and it cannot be migrated": migratable is not None
        and migratable.status == "False",
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def find_change(world: World) -> Json | None:
    """Return the patch of the VMI; None if there is nothing to change now."""
    own = world.own
    if own is None or own.metadata.annotations.get(TEMPLATE_HASH) == template_hash(world.template):
        return None
    migration = own.status.migration_state
    if not is_only_live(world, own) or (migration is not None and migration.is_under_way):
        return None
    wanted = next_run(world)
    spec = _placement(world, own, wanted)
    added = (max(_cpu(wanted).sockets, 1) - max(_cpu(own.spec).sockets, 1)) * _cpu(own.spec).vcpus_per_socket
    added_bytes = added_memory(own, wanted)
    cpus_wait = added and (cpu_change(own) is not None or refuse_sockets(world, own))
    if cpus_wait or (added_bytes and refuse_memory(own, wanted)):
        return {"spec": spec} if spec else None  # CPUs and memory wait for the former change or for a restart
    annotations: Json = {TEMPLATE_HASH: template_hash(world.template)}
    domain: Json = {}
    if added:
        domain = _with_cpus(world, own.spec.domain, sockets=max(_cpu(wanted).sockets, 1), added=added)
        annotations[CPUS_ADDED] = str(added)
    if added_bytes:
        domain = merged(domain, with_memory(own, wanted, world.vm.spec.template.spec.domain.resources))
    if domain:
        spec["domain"] = domain
    return {"metadata": {"annotations": annotations}, **({"spec": spec} if spec else {})}


def has_grown(own: VirtualMachineInstance) -> bool:
    """Tell whether virtual CPUs were added since the VMI was created."""
    return CPUS_ADDED in own.metadata.annotations


def _placement(world: World, own: VirtualMachineInstance, wanted: VirtualMachineInstanceSpec) -> Json:
    """Return the patch of node selector, affinity and tolerations."""
    template, patch, current = plain_template(world.template), {}, own.spec
    if current.node_selector != wanted.node_selector:
        patch.update(
            merge_patch({"nodeSelector": current.node_selector}, {"nodeSelector": template.get("nodeSelector")})
        )
    if current.affinity != wanted.affinity:
        patch.update(merge_patch({"affinity": current.affinity}, {"affinity": template.get("affinity")}))
    if current.tolerations != wanted.tolerations:
        patch["tolerations"] = template.get("tolerations")
    return patch


def _with_cpus(world: World, domain: DomainSpec, *, sockets: int, added: int) -> Json:
    """Return the domain patch with more sockets. CPU requests and limits grow by the Pod's request for as many CPUs."""
    ratio = max(1, world.configuration.developer_configuration.cpu_allocation_ratio)
    of_template = world.vm.spec.template.spec.domain.resources
    resources = {
        field: {"cpu": _plus(current["cpu"], added * (1000 // ratio))}
        for field, current, wanted in _amounts(domain.resources, of_template)
        if "cpu" in current and wanted.get("cpu")
    }
    return {"cpu": {"sockets": sockets}, **({"resources": resources} if resources else {})}


def _amounts(
    current: Resources, template: Resources
) -> tuple[tuple[str, dict[str, Quantity], dict[str, Quantity]], ...]:
    return ("requests", current.requests, template.requests), ("limits", current.limits, template.limits)


def _plus(amount: Quantity, milli: int) -> str:
    return quantity.from_milli(int(quantity.parse(amount) * 1000) + milli)


def _cpu(spec: VirtualMachineInstanceSpec) -> Cpu:
    return spec.domain.cpu or Cpu()

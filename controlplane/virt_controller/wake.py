# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change wakes which key. The process and the simulation use the same table.

VM  changed -> VM
VMI changed -> VMI, and the VM of its name (owner or not: its going frees the name)
Pod changed -> the VMI that controls it, and the one for which it is looked at, whatever it says of its owner
Node came, went, or was declared out of service -> the VMIs that were given to it
Node's label says otherwise whether it takes machines -> those of them that its virt-handler is to start
Node was quarantined or is no longer -> the VMIs that have no node yet: a Pod may leave it out in vain
KubeVirt's configuration changed -> the VMIs that have no node yet; the others keep what they were made with
A claim came, went, or got its volume -> the VMIs and VMs that name it
A DataVolume came, went, was filled or fails -> the VMIs and VMs that name it
The cluster has got CDI or lost it, its DataVolumes are known or no more -> the VMIs and VMs that name DataVolumes
VirtualMachineInstanceReplicaSet changed -> it
VMI changed in what a set decides by -> the set that controls it; one that nobody controls, the sets of its namespace
VirtualMachinePool changed -> it
VM changed in what a pool decides by, or its instance did -> the pool that controls the VM
Node came, went, or its label says otherwise whether it takes machines -> the Node; what else happens to it is nobody's
Lease of a node says another duration -> the Node

Of migrations: migration_wakes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from kubevirt_api.names import QUARANTINED, SCHEDULABLE

from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.data_volume import DataVolume
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.lease import node_of
from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.node import Node
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.phase import SCHEDULED
from controlplane.api.objects.resources import (
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_POOL,
    Key,
)
from controlplane.engine.ports import Cache
from controlplane.virt_controller.node.decide import duration_seconds
from controlplane.virt_controller.node.reconciler import read_lease
from controlplane.virt_controller.pool import member as pool_member
from controlplane.virt_controller.replicaset.member import Member, fingerprint, read_member
from controlplane.virt_controller.storage.claims import BY_CLAIM, DATA_VOLUMES

Wake = Callable[[Key], None]


class _Owned(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class _Phase(Struct, frozen=True, kw_only=True):
    phase: str = ""


class _Phased(Struct, frozen=True, kw_only=True):
    status: _Phase = _Phase()


class _Configured(Struct, frozen=True, kw_only=True):
    spec: msgspec.Raw = msgspec.Raw(b"")


BY_NODE = "node"
"""Index of VMIs by status.nodeName; "" until they have one."""
_claim_decoder = msgspec.json.Decoder(PersistentVolumeClaim)
_node_decoder = msgspec.json.Decoder(Node)
_decoder = msgspec.json.Decoder(_Owned)
_phase_decoder = msgspec.json.Decoder(_Phased)
_spec_decoder = msgspec.json.Decoder(_Configured)


def connect(
    *,
    vms: Cache,
    vmis: Cache,
    pods: Cache,
    nodes: Cache,
    vmi_of: Callable[[Key], Key | None],
    wake_vm: Wake,
    wake_vmi: Wake,
) -> None:
    """Subscribe to the caches; that of VMIs has the index BY_NODE. What is in them already comes as an addition.

    vmi_of: the VMI for which a Pod of a name is looked at.
    """

    def on_vm(key: Key, _before: bytes | None, _after: bytes | None) -> None:
        wake_vm(key)

    def on_vmi(key: Key, _before: bytes | None, _after: bytes | None) -> None:
        wake_vmi(key)
        wake_vm(key)

    def on_pod(key: Key, before: bytes | None, after: bytes | None) -> None:
        for raw in (before, after):
            if raw is not None:
                for name in controlling_vmis(raw):
                    wake_vmi(Key(key.namespace, name))
        known = vmi_of(key)
        if known is not None:
            wake_vmi(known)

    def on_node(key: Key, before: bytes | None, after: bytes | None) -> None:
        if _proof(before) != _proof(after):
            for vmi in vmis.indexed(BY_NODE, key.name):
                wake_vmi(vmi)
        elif _says(before) != _says(after):
            for vmi in list(vmis.indexed(BY_NODE, key.name)):
                if _is_to_start(vmis.get(vmi)):
                    wake_vmi(vmi)
        if _is_marked(before) != _is_marked(after):
            for vmi in list(vmis.indexed(BY_NODE, "")):
                wake_vmi(vmi)

    vms.subscribe(on_vm)
    vmis.subscribe(on_vmi)
    pods.subscribe(on_pod)
    nodes.subscribe(on_node)


def connect_nodes(nodes: Cache, leases: Cache, wake_node: Wake) -> None:
    """Subscribe for the node controller. A Lease that is renewed wakes nobody: silence comes by time alone.

    One that is to last otherwise does: who waits for it would wait for as long as it lasted before.
    """

    def on_node(key: Key, before: bytes | None, after: bytes | None) -> None:
        if _says(before) != _says(after):
            wake_node(key)

    def on_lease(key: Key, before: bytes | None, after: bytes | None) -> None:
        node = node_of(key.name)
        if node is not None and _lasts(before) != _lasts(after):
            wake_node(Key("", node))

    nodes.subscribe(on_node)
    leases.subscribe(on_lease)


def connect_configuration(kubevirts: Cache, vmis: Cache, wake_vmi: Wake) -> None:
    """Subscribe for the VMI controller. vmis has the index BY_NODE."""

    def on_kubevirt(_key: Key, before: bytes | None, after: bytes | None) -> None:
        if spec_of(before) != spec_of(after):
            for vmi in list(vmis.indexed(BY_NODE, "")):
                wake_vmi(vmi)

    kubevirts.subscribe(on_kubevirt)


def connect_claims(*, claims: Cache, vms: Cache, vmis: Cache, wake_vm: Wake, wake_vmi: Wake) -> None:
    """Subscribe for those that wait for a claim. vms and vmis have the index BY_CLAIM."""

    def on_claim(key: Key, before: bytes | None, after: bytes | None) -> None:
        if _gist(before) == _gist(after):
            return
        for vmi in list(vmis.indexed(BY_CLAIM, str(key))):
            wake_vmi(vmi)
        for vm in list(vms.indexed(BY_CLAIM, str(key))):
            wake_vm(vm)

    claims.subscribe(on_claim)


def connect_data_volumes(
    *, data_volumes: Cache, vms: Cache, vmis: Cache, wake_vm: Wake, wake_vmi: Wake
) -> Callable[[], None]:
    """Subscribe for those that wait for a DataVolume. Return what tells them that more or less is known."""

    def wake(place: str) -> None:
        for vmi in list(vmis.indexed(BY_CLAIM, place)):
            wake_vmi(vmi)
        for vm in list(vms.indexed(BY_CLAIM, place)):
            wake_vm(vm)

    def on_data_volume(key: Key, before: bytes | None, after: bytes | None) -> None:
        if _fill(before) != _fill(after):
            wake(str(key))

    data_volumes.subscribe(on_data_volume)
    return lambda: wake(DATA_VOLUMES)


def connect_replica_sets(*, replica_sets: Cache, vmis: Cache, wake: Wake) -> None:
    """Subscribe for the replica set controller."""

    def on_set(key: Key, _before: bytes | None, _after: bytes | None) -> None:
        wake(key)

    def on_vmi(key: Key, before: bytes | None, after: bytes | None) -> None:
        states = [None if raw is None else read_member(raw) for raw in (before, after)]
        was, now = (None if one is None else fingerprint(one) for one in states)
        if was != now:
            for one in {found for state in states if state is not None for found in _sets(key.namespace, state)}:
                wake(one)

    def _sets(namespace: str, member: Member) -> list[Key]:
        owner = controller_of(member.metadata)
        if owner is None:
            known = replica_sets.keys()
            return [one for one in known if one.namespace == namespace]
        return [Key(namespace, owner.name)] if owner.kind == VIRTUAL_MACHINE_INSTANCE_REPLICA_SET.kind else []

    replica_sets.subscribe(on_set)
    vmis.subscribe(on_vmi)


def connect_pools(*, pools: Cache, vms: Cache, vmis: Cache, wake: Wake) -> None:
    """Subscribe for the pool controller."""

    def on_pool(key: Key, _before: bytes | None, _after: bytes | None) -> None:
        wake(key)

    def on_vm(key: Key, before: bytes | None, after: bytes | None) -> None:
        if not pools.keys():
            return  # most clusters have none, and machines report a lot
        states = [None if raw is None else pool_member.read_member(raw) for raw in (before, after)]
        was, now = (None if one is None else pool_member.fingerprint(one) for one in states)
        if was == now:
            return
        for one in {pool for state in states if state is not None for pool in _pools(key.namespace, state)}:
            wake(one)

    def on_vmi(key: Key, before: bytes | None, after: bytes | None) -> None:
        raw = vms.get(key) if pools.keys() else None
        found = [] if raw is None else _pools(key.namespace, pool_member.read_member(raw))
        if found:
            states = (None if one is None else pool_member.read_run(one) for one in (before, after))
            was, now = (None if one is None else pool_member.gist_of_run(one) for one in states)
            if was != now:
                wake(found[0])

    def _pools(namespace: str, member: pool_member.Member) -> list[Key]:
        owner = controller_of(member.metadata)
        return [Key(namespace, owner.name)] if owner is not None and owner.kind == VIRTUAL_MACHINE_POOL.kind else []

    pools.subscribe(on_pool)
    vms.subscribe(on_vm)
    vmis.subscribe(on_vmi)


def _gist(raw: bytes | None) -> object:
    """What a claim says that somebody waits for: None that it is gone; else whether it is going, bound, and whose."""
    if raw is None:
        return None
    claim = _claim_decoder.decode(raw)
    return claim.metadata.deletion_timestamp is not None, claim.is_bound, controller_of(claim.metadata)


def _fill(raw: bytes | None) -> object:
    """What a DataVolume says that somebody waits for. How far CDI has come, several times a second, is not."""
    if raw is None:
        return None
    try:
        one = decode(raw, DataVolume)
    except DecodeError:
        return raw
    return one.status.phase, one.trouble, controller_of(one.metadata), one.metadata.deletion_timestamp is None


def spec_of(raw: bytes | None) -> bytes | None:
    return None if raw is None else bytes(_spec_decoder.decode(raw).spec)


def controlling_vmis(raw: bytes) -> list[str]:
    owners = _decoder.decode(raw).metadata.owner_references
    return [one.name for one in owners if one.controller and one.kind == VIRTUAL_MACHINE_INSTANCE.kind]


def _says(raw: bytes | None) -> tuple[bool, str | None]:
    if raw is None:
        return False, None
    return True, _node_decoder.decode(raw).metadata.labels.get(SCHEDULABLE)


def _lasts(raw: bytes | None) -> int:
    return duration_seconds(read_lease(raw))


def _is_to_start(raw: bytes | None) -> bool:
    return raw is not None and _phase_decoder.decode(raw).status.phase == SCHEDULED


def _is_marked(raw: bytes | None) -> bool:
    return raw is not None and QUARANTINED in _node_decoder.decode(raw).metadata.labels


def _proof(raw: bytes | None) -> bool | None:
    """What a Node says about the guests on it: None that it is gone, True that it is off."""
    return None if raw is None else _node_decoder.decode(raw).is_out_of_service

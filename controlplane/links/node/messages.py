# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of virt-handler, answers of virt-node: typed, bounded, JSON. Values only.

A launcher is named by its Pod's UID and by nothing else: no path, no process, no interface is ever named by the one
who asks. A request is answered once, by its `id`, in any order; `Cancel` takes one back that waits.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from controlplane.domain.network import MasqueradeNetwork, masquerade_network

PROTOCOL = 2
"""Both ends are of the same release, but for the minutes of an upgrade: then the newer one waits for the other."""
MESSAGE_LIMIT_BYTES = 64 * 1024
PORTS_LIMIT = 1024
ADDRESSES_LIMIT = 32
_TEXT_LIMIT = 1024

Id = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
PodUid = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?\Z")]
"""One path component, whatever else it says."""
Text = Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)]
Name = Annotated[str, msgspec.Meta(max_length=128)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=256)]
Address = Annotated[str, msgspec.Meta(max_length=45)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class ProtocolError(Exception):
    """The other end said something that is no message, or not one for this end."""


class Port(msgspec.Struct, frozen=True, order=True):
    """A port of the Pod that is the guest's."""

    protocol: Literal["tcp", "udp"]
    number: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Masquerade(msgspec.Struct, frozen=True):
    """What a Pod's network has to look like for its guest."""

    cidr: Annotated[str, msgspec.Meta(max_length=18)]
    """The network between Pod and guest, IPv4."""
    ports: Annotated[tuple[Port, ...], msgspec.Meta(max_length=PORTS_LIMIT)] = ()
    """Inbound connections to these go to the guest, the rest to the Pod itself; none listed means all to the guest."""

    @property
    def network(self) -> MasqueradeNetwork:
        """The network's addresses. ValueError when it is none."""
        return masquerade_network(self.cidr)


class PodInterface(msgspec.Struct, frozen=True):
    """The Pod's own interface, as the cluster's network made it."""

    addresses: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=45)], ...], msgspec.Meta(max_length=ADDRESSES_LIMIT)
    ]
    """IPv4 first, then global IPv6; without prefix length."""
    mtu: Annotated[int, msgspec.Meta(ge=68, le=65535)]
    is_tap_open: bool | None = None
    """Somebody, who can only be the guest's QEMU, holds the tap. None: a virt-node that does not look."""


class KvmFinding(msgspec.Struct, frozen=True):
    """Whether guests can use KVM here, and why not."""

    is_usable: bool
    reason: Text = ""


class HostCpu(msgspec.Struct, frozen=True):
    """The processor that guests have here who take it as it is."""

    model: Name
    """The one that libvirt knows that comes next to it."""
    vendor: Name = ""
    models: Names = ()
    """Those that a guest can be given here."""
    required: Names = ()
    """Features beyond the model's."""
    features: Names = ()
    """All of them."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The first message of either end."""

    protocol: int


class OpenSocket(msgspec.Struct, frozen=True, tag=True):
    """Wait for the launcher's libvirt socket, prove it, and hand it over so that virt-handler may dial it."""

    id: Id
    pod_uid: PodUid


MigrationChannel = Literal["memory", "disks"]
"""What QEMU sends a guest by, from a socket in its launcher to one in the launcher of the target."""


class ListenForMigration(msgspec.Struct, frozen=True, tag=True):
    """Make the socket that a source's QEMU dials, and hand it over as it listens; what was there before goes."""

    id: Id
    pod_uid: PodUid
    channel: MigrationChannel


class OpenMigrationSocket(msgspec.Struct, frozen=True, tag=True):
    """Wait for the socket on which a target's QEMU listens, prove it, and hand it over so that it may be dialled."""

    id: Id
    pod_uid: PodUid
    channel: MigrationChannel


class OpenReport(msgspec.Struct, frozen=True, tag=True):
    """Hand the launcher's report over, open for reading; it is not waited for."""

    id: Id
    pod_uid: PodUid


class GiveCapabilities(msgspec.Struct, frozen=True, tag=True):
    """Wait for the launcher's directory, then put libvirt's capability cache there, from the node's own probe."""

    id: Id
    pod_uid: PodUid
    with_kvm: bool


class SetUpNetwork(msgspec.Struct, frozen=True, tag=True):
    """Make the Pod's network ready for its guest."""

    id: Id
    pod_uid: PodUid
    wanted: Masquerade


class FindTraces(msgspec.Struct, frozen=True, tag=True):
    """Look for what the node still has of a Pod."""

    id: Id
    pod_uid: PodUid


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Nobody waits for this request any more. Not answered."""

    id: Id


Request = (
    OpenSocket | ListenForMigration | OpenMigrationSocket | OpenReport | GiveCapabilities | SetUpNetwork | FindTraces
)
FromHandler = Hello | Request | Cancel


class NodeState(msgspec.Struct, frozen=True, tag=True):
    """What the node offers to launchers; sent after the greeting and whenever it changes."""

    kvm: KvmFinding | None = None
    """None: not known yet."""
    present: Annotated[tuple[Name, ...], msgspec.Meta(max_length=16)] = ()
    """Resources whose devices the node has."""
    usable: Annotated[tuple[Name, ...], msgspec.Meta(max_length=16)] = ()
    registered: Annotated[tuple[Name, ...], msgspec.Meta(max_length=16)] = ()
    """Those that the kubelet has taken."""
    cpu: HostCpu | None = None
    """None where guests have none of the node's: they are emulated, or libvirt does not know it."""


class Opened(msgspec.Struct, frozen=True, tag=True):
    """To whatever opens something; one descriptor comes along."""

    id: Id


class Done(msgspec.Struct, frozen=True, tag=True):
    """To GiveCapabilities."""

    id: Id


class NetworkReady(msgspec.Struct, frozen=True, tag=True):
    """To SetUpNetwork."""

    id: Id
    interface: PodInterface


class TracesFound(msgspec.Struct, frozen=True, tag=True):
    """To FindTraces."""

    id: Id
    has_directory: bool
    processes: Count
    emulators: Count


class Failed(msgspec.Struct, frozen=True, tag=True):
    """To any request.

    refused: something of the launcher is not what it has to be; missing: it is not there (yet); gone: it ended
    meanwhile; failed: the node could not do it.
    """

    id: Id
    kind: Literal["refused", "missing", "gone", "failed"]
    text: Text


Answer = Opened | Done | NetworkReady | TracesFound | Failed
FromNode = Hello | NodeState | Answer

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is raised for bytes that are no message: of text that is no UTF-8 msgspec speaks by Python's own error."""
_encoder = msgspec.json.Encoder()
_from_handler: msgspec.json.Decoder[FromHandler] = msgspec.json.Decoder(FromHandler)
_from_node: msgspec.json.Decoder[FromNode] = msgspec.json.Decoder(FromNode)


def encode(message: FromHandler | FromNode) -> bytes:
    """Render a message. ValueError when it is too long to be carried, or nothing that the other end would read."""
    data = _encoder.encode(message)
    if len(data) > MESSAGE_LIMIT_BYTES:
        raise ValueError(f"a message of {len(data)} bytes, more than the {MESSAGE_LIMIT_BYTES} that are carried")
    try:
        (_from_handler if isinstance(message, FromHandler) else _from_node).decode(data)
    except msgspec.ValidationError as error:
        raise ValueError(f"no message that would be read: {error}") from error
    return data


def read_from_handler(data: bytes) -> FromHandler:
    """Read what virt-handler sent. ProtocolError."""
    try:
        return _from_handler.decode(data)
    except _UNREADABLE as error:
        raise ProtocolError(f"virt-handler sent no message: {error}") from error


def read_from_node(data: bytes) -> FromNode:
    """Read what virt-node sent. ProtocolError."""
    try:
        return _from_node.decode(data)
    except _UNREADABLE as error:
        raise ProtocolError(f"virt-node sent no message: {error}") from error


def bounded_text(text: str) -> str:
    """Cut a text to what an answer may carry."""
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 3] + "..."

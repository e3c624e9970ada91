# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of virt-handler and responses of virt-node: typed, bounded, JSON. Values only.

A request names a launcher by its Pod's UID only, never by a path, a process or an interface. Each request gets one
response with the same `id`, in any order. `Cancel` withdraws a request that waits.

The class names are the messages' tags: renaming one changes the protocol.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from controlplane.domain.network import MasqueradeNetwork, masquerade_network

PROTOCOL = 4
"""Both ends are of the same release, except during an upgrade: then the newer one waits for the other."""
MESSAGE_LIMIT_BYTES = 64 * 1024
PORTS_LIMIT = 1024
EXIT_WAIT_LIMIT_SECONDS = 1.0
"""Meanwhile virt-node does no other work for this Pod."""
ADDRESSES_LIMIT = 32
_TEXT_LIMIT = 1024

Id = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
PodUid = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?\Z")]
"""Always one path component."""
Text = Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)]
Name = Annotated[str, msgspec.Meta(max_length=128)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=256)]
Address = Annotated[str, msgspec.Meta(max_length=45)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class ProtocolError(Exception):
    """The peer sent something that is not a message, or not a message for this end."""


class Port(msgspec.Struct, frozen=True, order=True):
    """A port of the Pod that is forwarded to the guest."""

    protocol: Literal["tcp", "udp"]
    number: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Masquerade(msgspec.Struct, frozen=True):
    """The network that a Pod needs for its guest."""

    cidr: Annotated[str, msgspec.Meta(max_length=18)]
    """The IPv4 network between Pod and guest."""
    ports: Annotated[tuple[Port, ...], msgspec.Meta(max_length=PORTS_LIMIT)] = ()
    """Ports that are forwarded to the guest; the others stay with the Pod. Empty: all are forwarded."""

    @property
    def network(self) -> MasqueradeNetwork:
        """The network's addresses. ValueError when `cidr` is not a usable network."""
        return masquerade_network(self.cidr)


class PodInterface(msgspec.Struct, frozen=True):
    """The Pod's own interface, as the CNI plug-in made it."""

    addresses: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=45)], ...], msgspec.Meta(max_length=ADDRESSES_LIMIT)
    ]
    """IPv4 first, then global IPv6; without prefix length."""
    mtu: Annotated[int, msgspec.Meta(ge=68, le=65535)]
    is_tap_open: bool | None = None
    """A process has the tap open, which can only be the guest's QEMU. None: this virt-node does not check."""


class KvmFinding(msgspec.Struct, frozen=True):
    """Whether guests can use KVM on this node; if not, why."""

    is_usable: bool
    reason: Text = ""


class HostCpu(msgspec.Struct, frozen=True):
    """The node's processor, for guests that use it (host-model, host-passthrough), and what else a guest can have."""

    model: Name
    """libvirt's closest CPU model; "" where guests are emulated: none of them has the node's processor."""
    vendor: Name = ""
    models: Names = ()
    """CPU models that a guest can have on this node."""
    required: Names = ()
    """Features in addition to the model's."""
    features: Names = ()
    """All features."""
    machines: Names = ()
    """QEMU's names of the boards that a guest can have on this node."""
    deprecated_machines: Names = ()
    """Those of them that QEMU will remove."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The first message of each end."""

    protocol: int


class OpenSocket(msgspec.Struct, frozen=True, tag=True):
    """Wait for the launcher's libvirt socket, verify it, and send a descriptor that virt-handler may connect to."""

    id: Id
    pod_uid: PodUid


MigrationChannel = Literal["memory", "disks"]
"""What a connection of a migration carries."""


GuestDevice = Literal["serial", "vnc"]
"""What users look at: the serial console, and the screen."""


class ListenForMigration(msgspec.Struct, frozen=True, tag=True):
    """Make the socket to which the source's QEMU connects, and send it, listening. A previous one is replaced."""

    id: Id
    pod_uid: PodUid
    channel: MigrationChannel


class OpenMigrationSocket(msgspec.Struct, frozen=True, tag=True):
    """Wait for the socket on which the target's QEMU listens, verify it, and send a descriptor to connect to."""

    id: Id
    pod_uid: PodUid
    channel: MigrationChannel


class OpenGuestSocket(msgspec.Struct, frozen=True, tag=True):
    """Wait for the socket on which QEMU serves a device of the guest, verify it, and send a descriptor."""

    id: Id
    pod_uid: PodUid
    device: GuestDevice


class OpenReport(msgspec.Struct, frozen=True, tag=True):
    """Send the launcher's report, open for reading. A report that is missing is not waited for."""

    id: Id
    pod_uid: PodUid


class OpenConsoleLog(msgspec.Struct, frozen=True, tag=True):
    """Send the log of the guest's serial console, open for reading. A log that is missing is not waited for."""

    id: Id
    pod_uid: PodUid


class GiveCapabilities(msgspec.Struct, frozen=True, tag=True):
    """Wait for the launcher's directory, and copy the node's libvirt capability cache into it."""

    id: Id
    pod_uid: PodUid
    with_kvm: bool


class SetUpNetwork(msgspec.Struct, frozen=True, tag=True):
    """Set up the Pod's network for its guest."""

    id: Id
    pod_uid: PodUid
    wanted: Masquerade


class FindTraces(msgspec.Struct, frozen=True, tag=True):
    """Look for a Pod's directory and processes on the node."""

    id: Id
    pod_uid: PodUid
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=EXIT_WAIT_LIMIT_SECONDS)] = 0.0
    """How long to wait for the end of its QEMU first. A virt-node of an older release does not wait."""


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Withdraw a request. It gets no response."""

    id: Id


Request = (
    OpenSocket
    | ListenForMigration
    | OpenMigrationSocket
    | OpenGuestSocket
    | OpenReport
    | OpenConsoleLog
    | GiveCapabilities
    | SetUpNetwork
    | FindTraces
)
FromHandler = Hello | Request | Cancel


class NodeState(msgspec.Struct, frozen=True, tag=True):
    """The node's devices and processor; sent after Hello and at each change."""

    kvm: KvmFinding | None = None
    """None: unknown yet."""
    present: Annotated[tuple[Name, ...], msgspec.Meta(max_length=16)] = ()
    """Resources whose devices the node has."""
    usable: Annotated[tuple[Name, ...], msgspec.Meta(max_length=16)] = ()
    registered: Annotated[tuple[Name, ...], msgspec.Meta(max_length=16)] = ()
    """Resources that are registered with the kubelet."""
    cpu: HostCpu | None = None
    """None where guests cannot use the node's processor: no KVM, or libvirt cannot describe it."""


class Opened(msgspec.Struct, frozen=True, tag=True):
    """Response to the requests that open something; it brings one descriptor."""

    id: Id


class Done(msgspec.Struct, frozen=True, tag=True):
    """Response to GiveCapabilities."""

    id: Id


class NetworkReady(msgspec.Struct, frozen=True, tag=True):
    """Response to SetUpNetwork."""

    id: Id
    interface: PodInterface


class TracesFound(msgspec.Struct, frozen=True, tag=True):
    """Response to FindTraces."""

    id: Id
    has_directory: bool
    processes: Count
    emulators: Count


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Response to any request that failed.

    refused: a file or process of the launcher is not as expected. missing: it does not exist (yet). gone: the launcher
    has ended. failed: the node cannot do it.
    """

    id: Id
    kind: Literal["refused", "missing", "gone", "failed"]
    text: Text


Answer = Opened | Done | NetworkReady | TracesFound | Failed
FromNode = Hello | NodeState | Answer

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not a message: for text that is not UTF-8, Python's own error."""
_encoder = msgspec.json.Encoder()
_from_handler: msgspec.json.Decoder[FromHandler] = msgspec.json.Decoder(FromHandler)
_from_node: msgspec.json.Decoder[FromNode] = msgspec.json.Decoder(FromNode)


def encode(message: FromHandler | FromNode) -> bytes:
    """Encode a message. ValueError when it is too long, or when the other end would refuse it."""
    data = _encoder.encode(message)
    if len(data) > MESSAGE_LIMIT_BYTES:
        raise ValueError(f"the message has {len(data)} bytes, at most {MESSAGE_LIMIT_BYTES} are sent")
    try:
        (_from_handler if isinstance(message, FromHandler) else _from_node).decode(data)
    except msgspec.ValidationError as error:
        raise ValueError(f"the message would be refused: {error}") from error
    return data


def read_from_handler(data: bytes) -> FromHandler:
    """Decode a message of virt-handler. ProtocolError."""
    try:
        return _from_handler.decode(data)
    except _UNREADABLE as error:
        raise ProtocolError(f"virt-handler sent something that is not a message: {error}") from error


def read_from_node(data: bytes) -> FromNode:
    """Decode a message of virt-node. ProtocolError."""
    try:
        return _from_node.decode(data)
    except _UNREADABLE as error:
        raise ProtocolError(f"virt-node sent something that is not a message: {error}") from error


def bounded_text(text: str) -> str:
    """Cut a text to the length that a response may carry."""
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 3] + "..."

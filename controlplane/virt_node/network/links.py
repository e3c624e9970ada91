# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bridge, tap, addresses and sysctls in the network namespace of the calling thread. Idempotent, no policy.

It changes only what differs, because each running guest's network is checked every few minutes.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Interface
from pathlib import Path

from msgspec import structs
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from controlplane.domain import layout
from controlplane.links.node.messages import ADDRESSES_LIMIT, PodInterface

BRIDGE_MAC = "02:00:00:00:00:00"
_TUNSETIFF, _TUNSETPERSIST, _TUNSETOWNER, _TUNSETGROUP = 0x400454CA, 0x400454CB, 0x400454CC, 0x400454CE
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_IFF_UP = 1
_TUN_DEVICE = "/dev/net/tun"


@dataclass(frozen=True, slots=True)
class _Link:
    index: int
    mtu: int
    master: int | None
    is_up: bool
    has_carrier: bool


def build(gateway: IPv4Interface) -> PodInterface:
    """Create bridge and tap if they are missing. LookupError if the Pod has no eth0."""
    with IPRoute() as route:
        links, addresses = _links(route), _addresses(route)
        pod = _pod_interface(links, addresses)
        bridge = links.get(layout.BRIDGE) or _add_bridge(route, pod.mtu)
        if gateway.ip.compressed not in addresses.get(bridge.index, ()):
            route.addr("add", index=bridge.index, address=gateway.ip.compressed, prefixlen=gateway.network.prefixlen)
        _disable_ipv6(layout.BRIDGE)
        tap = links.get(layout.TAP) or _add_tap(route)
        if (tap.mtu, tap.master, tap.is_up) != (pod.mtu, bridge.index, True):
            route.link("set", index=tap.index, mtu=pod.mtu, master=bridge.index, state="up")
        if not bridge.is_up:
            route.link("set", index=bridge.index, state="up")
    pod = structs.replace(pod, is_tap_open=tap.has_carrier)
    _sysctl("net/ipv4/ip_forward", "1")
    # On the bridge alone: on eth0 it would let neighbours reach the Pod's localhost.
    _sysctl(f"net/ipv4/conf/{layout.BRIDGE}/route_localnet", "1")
    return pod


def _pod_interface(links: Mapping[str, _Link], addresses: Mapping[int, Sequence[str]]) -> PodInterface:
    """Describe the Pod's own interface. LookupError when there is none."""
    link = links.get(layout.POD_INTERFACE)
    if link is None:
        raise LookupError(f"the Pod has no interface {layout.POD_INTERFACE}: masquerade needs the Pod network")
    return PodInterface(tuple(addresses.get(link.index, ())[:ADDRESSES_LIMIT]), link.mtu)


def _links(route: IPRoute, **only: str) -> dict[str, _Link]:
    """Return the interfaces by name. One request for all: each takes half a millisecond of processor time."""
    links = {}
    for message in route.get_links(**only):
        attributes = dict(message["attrs"])
        is_up = bool(message["flags"] & _IFF_UP)
        has_carrier = attributes.get("IFLA_CARRIER") == 1  # of a tap: while a process has it open
        links[attributes["IFLA_IFNAME"]] = _Link(
            message["index"], attributes["IFLA_MTU"], attributes.get("IFLA_MASTER"), is_up, has_carrier
        )
    return links


def _addresses(route: IPRoute) -> dict[int, list[str]]:
    """Return the addresses of global scope by interface, IPv4 before IPv6."""
    messages = [message for message in route.get_addr() if message["scope"] == 0]
    messages.sort(key=lambda message: int(message["family"]))  # AF_INET is 2, AF_INET6 is 10
    addresses: dict[int, list[str]] = {}
    for message in messages:
        addresses.setdefault(message["index"], []).append(str(dict(message["attrs"])["IFA_ADDRESS"]))
    return addresses


def _read_created(route: IPRoute, name: str) -> _Link:
    try:
        return _links(route, ifname=name)[name]
    except (KeyError, NetlinkError) as error:
        raise LookupError(f"the interface {name} disappeared right after it was created") from error


def _add_bridge(route: IPRoute, mtu: int) -> _Link:
    route.link("add", ifname=layout.BRIDGE, kind="bridge", address=BRIDGE_MAC, mtu=mtu)
    return _read_created(route, layout.BRIDGE)


def _add_tap(route: IPRoute) -> _Link:
    """Create a persistent tap that uid 107 may open without a capability."""
    fd = os.open(_TUN_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    try:
        name = struct.pack("16sH22x", layout.TAP.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR)
        fcntl.ioctl(fd, _TUNSETIFF, name)
        fcntl.ioctl(fd, _TUNSETOWNER, layout.UID)
        fcntl.ioctl(fd, _TUNSETGROUP, layout.UID)
        fcntl.ioctl(fd, _TUNSETPERSIST, 1)
    finally:
        os.close(fd)
    return _read_created(route, layout.TAP)


def _disable_ipv6(interface: str) -> None:
    """Disable IPv6 between the Pod and its guest, which do not use it. A kernel without IPv6 has no such file."""
    with suppress(FileNotFoundError):
        _sysctl(f"net/ipv6/conf/{interface}/disable_ipv6", "1")


def _sysctl(name: str, value: str) -> None:
    """Write a sysctl of the thread's namespace (/proc/sys/net follows it), if the value differs."""
    path = Path("/proc/sys") / name
    if path.read_text().strip() != value:
        path.write_text(value)

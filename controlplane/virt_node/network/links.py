# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bridge, tap, addresses and sysctls in the network namespace of the calling thread. Idempotent, no policy."""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from ipaddress import IPv4Interface
from pathlib import Path

from pyroute2 import IPRoute

from controlplane.domain import layout
from controlplane.node_link.messages import ADDRESSES_LIMIT, PodInterface

BRIDGE_MAC = "02:00:00:00:00:00"
_TUNSETIFF, _TUNSETPERSIST, _TUNSETOWNER, _TUNSETGROUP = 0x400454CA, 0x400454CB, 0x400454CC, 0x400454CE
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_TUN_DEVICE = "/dev/net/tun"


def build(gateway: IPv4Interface) -> PodInterface:
    """Make bridge and tap as far as they are missing; LookupError when the Pod has no eth0."""
    with IPRoute() as route:
        pod = _pod_interface(route)
        bridge = _link(route, layout.BRIDGE) or _add_bridge(route, pod.mtu)
        if gateway.ip.compressed not in _addresses(route, bridge):
            route.addr("add", index=bridge, address=gateway.ip.compressed, prefixlen=gateway.network.prefixlen)
        _silence_ipv6(layout.BRIDGE)
        tap = _link(route, layout.TAP)
        if tap is None:
            _add_tap()
            tap = _link(route, layout.TAP)
        route.link("set", index=tap, mtu=pod.mtu, master=bridge, state="up")
        route.link("set", index=bridge, state="up")
    _sysctl("net/ipv4/ip_forward", "1")
    # On the bridge alone: on eth0 it would let neighbours reach the Pod's localhost.
    _sysctl(f"net/ipv4/conf/{layout.BRIDGE}/route_localnet", "1")
    return pod


def _pod_interface(route: IPRoute) -> PodInterface:
    """Read the Pod's own interface; LookupError when there is none."""
    index = _link(route, layout.POD_INTERFACE)
    if index is None:
        raise LookupError(f"the Pod has no interface {layout.POD_INTERFACE}: masquerade needs the Pod network")
    attributes = dict(route.get_links(index)[0]["attrs"])
    return PodInterface(tuple(_addresses(route, index)[:ADDRESSES_LIMIT]), int(attributes["IFLA_MTU"]))


def _link(route: IPRoute, name: str) -> int | None:
    found = route.link_lookup(ifname=name)
    return int(found[0]) if found else None


def _addresses(route: IPRoute, index: int) -> list[str]:
    """Return the addresses of global scope, IPv4 before IPv6."""
    messages = [message for message in route.get_addr(index=index) if message["scope"] == 0]
    messages.sort(key=lambda message: int(message["family"]))  # AF_INET is 2, AF_INET6 is 10
    return [str(dict(message["attrs"])["IFA_ADDRESS"]) for message in messages]


def _add_bridge(route: IPRoute, mtu: int) -> int:
    route.link("add", ifname=layout.BRIDGE, kind="bridge", address=BRIDGE_MAC, mtu=mtu)
    index = _link(route, layout.BRIDGE)
    if index is None:
        raise LookupError(f"the bridge {layout.BRIDGE} vanished as soon as it was made")
    return index


def _add_tap() -> None:
    """Make a persistent tap that uid 107 may open without any capability."""
    fd = os.open(_TUN_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    try:
        name = struct.pack("16sH22x", layout.TAP.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR)
        fcntl.ioctl(fd, _TUNSETIFF, name)
        fcntl.ioctl(fd, _TUNSETOWNER, layout.UID)
        fcntl.ioctl(fd, _TUNSETGROUP, layout.UID)
        fcntl.ioctl(fd, _TUNSETPERSIST, 1)
    finally:
        os.close(fd)


def _silence_ipv6(interface: str) -> None:
    """Keep the Pod from talking IPv6 to its guest: nothing serves it there. Kernels without IPv6 have no such file."""
    with suppress(FileNotFoundError):
        _sysctl(f"net/ipv6/conf/{interface}/disable_ipv6", "1")


def _sysctl(name: str, value: str) -> None:
    """Write a sysctl of the thread's namespace (/proc/sys/net follows it), unless it has the value."""
    path = Path("/proc/sys") / name
    if path.read_text().strip() != value:
        path.write_text(value)

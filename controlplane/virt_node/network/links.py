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

from controlplane.domain import layout
from controlplane.node_link.messages import ADDRESSES_LIMIT, PodInterface
from controlplane.virt_node.network.rtnetlink import Link, Routes

BRIDGE_MAC = "02:00:00:00:00:00"
_TUNSETIFF, _TUNSETPERSIST, _TUNSETOWNER, _TUNSETGROUP = 0x400454CA, 0x400454CB, 0x400454CC, 0x400454CE
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_TUN_DEVICE = "/dev/net/tun"


def build(gateway: IPv4Interface) -> PodInterface:
    """Make bridge and tap as far as they are missing; LookupError when the Pod has no eth0."""
    with Routes() as routes:
        pod = _pod_interface(routes)
        bridge = routes.link(layout.BRIDGE) or _add_bridge(routes, pod.mtu)
        if gateway.ip.compressed not in routes.addresses(bridge.index):
            routes.add_address(bridge.index, gateway)
        _silence_ipv6(layout.BRIDGE)
        tap = routes.link(layout.TAP) or _add_tap(routes)
        routes.set_up(tap.index, mtu=pod.mtu, master=bridge.index)
        routes.set_up(bridge.index)
    _sysctl("net/ipv4/ip_forward", "1")
    # On the bridge alone: on eth0 it would let neighbours reach the Pod's localhost.
    _sysctl(f"net/ipv4/conf/{layout.BRIDGE}/route_localnet", "1")
    return pod


def _pod_interface(routes: Routes) -> PodInterface:
    """Read the Pod's own interface; LookupError when there is none."""
    link = routes.link(layout.POD_INTERFACE)
    if link is None:
        raise LookupError(f"the Pod has no interface {layout.POD_INTERFACE}: masquerade needs the Pod network")
    return PodInterface(tuple(routes.addresses(link.index)[:ADDRESSES_LIMIT]), link.mtu)


def _add_bridge(routes: Routes, mtu: int) -> Link:
    routes.add_bridge(layout.BRIDGE, BRIDGE_MAC, mtu)
    return _made(routes, layout.BRIDGE)


def _made(routes: Routes, name: str) -> Link:
    link = routes.link(name)
    if link is None:
        raise LookupError(f"the link {name} vanished as soon as it was made")
    return link


def _add_tap(routes: Routes) -> Link:
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
    return _made(routes, layout.TAP)


def _silence_ipv6(interface: str) -> None:
    """Keep the Pod from talking IPv6 to its guest: nothing serves it there. Kernels without IPv6 have no such file."""
    with suppress(FileNotFoundError):
        _sysctl(f"net/ipv6/conf/{interface}/disable_ipv6", "1")


def _sysctl(name: str, value: str) -> None:
    """Write a sysctl of the thread's namespace (/proc/sys/net follows it), unless it has the value."""
    path = Path("/proc/sys") / name
    if path.read_text().strip() != value:
        path.write_text(value)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's links, as input of `ip` and `nft`. The texts are pure; `run_ip` and `run_nft` apply them.

The bridge is in the control plane's network namespace. The host gets only one end of one veth pair.
"""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network

from lab.errors import LabError
from lab.machines.addresses import POD_NETWORK, SERVICE_NETWORK, Addresses, node_name

BRIDGE = "lab0"
MTU = 1500


def control_plane_script(addresses: Addresses) -> list[str]:
    """Create the bridge. Runs inside the control plane's namespace."""
    return [
        "link set lo up",
        f"link add {BRIDGE} mtu {MTU} type bridge",
        f"addr add {addresses.control_plane}/{addresses.network.prefixlen} dev {BRIDGE}",
        f"link set {BRIDGE} up",
    ]


def host_link_script(addresses: Addresses, control_plane_pid: int) -> list[str]:
    """Create the host's link. Runs on the host. Its other end is `host` in the control plane's namespace."""
    link = addresses.host_link
    return [
        f"link add {link} mtu {MTU} type veth peer name host netns {control_plane_pid}",
        f"addr add {addresses.host}/{addresses.network.prefixlen} dev {link}",
        f"link set {link} up",
    ]


def bridge_host_script() -> list[str]:
    return [f"link set host master {BRIDGE}", "link set host up"]


def node_link_script(number: int, node_pid: int) -> list[str]:
    """Connect a node. Runs inside the control plane's namespace. The end there has the node's name."""
    name = node_name(number)
    return [
        f"link add {name} mtu {MTU} type veth peer name eth0 netns {node_pid}",
        f"link set {name} master {BRIDGE}",
        f"link set {name} up",
    ]


def node_script(addresses: Addresses, number: int) -> list[str]:
    """Give a node its address. Runs inside the node's namespace."""
    return [
        "link set lo up",
        f"addr add {addresses.node(number)}/{addresses.network.prefixlen} dev eth0",
        "link set eth0 up",
        f"route replace default via {addresses.control_plane}",
    ]


def pod_route_script(addresses: Addresses, numbers: Iterable[int]) -> list[str]:
    """Return routes to the Pods of these nodes, for the control plane and other nodes."""
    return [f"route replace {addresses.pods(number)} via {addresses.node(number)}" for number in numbers]


def masquerade_rules(addresses: Addresses, number: int) -> str:
    """Translate the source address of Pods to the node's address for destinations outside of the lab's Pods."""
    pods = addresses.pods(number)
    return f"""
table ip lab
delete table ip lab
table ip lab {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "eth0" ip saddr {pods} ip daddr != {{ {POD_NETWORK}, {SERVICE_NETWORK} }} masquerade
  }}
}}
"""


def enter_network(pid: int | None) -> list[str]:
    return [] if pid is None else ["nsenter", f"--net=/proc/{pid}/ns/net"]


def run_ip(script: Sequence[str], *, pid: int | None = None) -> None:
    """Run a batch of `ip` commands in the namespace of a process. None: on the host."""
    done = subprocess.run(
        [*enter_network(pid), "ip", "-batch", "-"],
        input="\n".join(script) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"`ip` refused a link, an address or a route of the lab: {done.stderr.strip()}")


def run_nft(rules: str, *, pid: int) -> None:
    done = subprocess.run(
        [*enter_network(pid), "nft", "-f", "-"], input=rules, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError(
            f"`nft` refused the lab's masquerade rule; the kernel needs nf_tables with nat: {done.stderr.strip()}"
        )


def links(*, pid: int | None = None) -> set[str]:
    done = subprocess.run(
        [*enter_network(pid), "ip", "-json", "link", "show"], capture_output=True, text=True, check=True
    )
    return {link["ifname"] for link in json.loads(done.stdout)}


def links_up(*, pid: int | None = None) -> set[str]:
    done = subprocess.run(
        [*enter_network(pid), "ip", "-json", "link", "show", "up"], capture_output=True, text=True, check=True
    )
    return {link["ifname"] for link in json.loads(done.stdout or "[]") if link}


def host_networks(*, without: str = "") -> list[IPv4Network]:
    """Return networks with an address or a route of this host, except the default route."""
    addresses = subprocess.run(["ip", "-json", "-4", "addr", "show"], capture_output=True, text=True, check=True)
    routes = subprocess.run(["ip", "-json", "-4", "route", "show"], capture_output=True, text=True, check=True)
    networks = [
        ipaddress.IPv4Interface(f"{address['local']}/{address['prefixlen']}").network
        for link in json.loads(addresses.stdout)
        for address in link.get("addr_info", [])
        if link["ifname"] != without
    ]
    destinations = [route["dst"] for route in json.loads(routes.stdout or "[]") if route.get("dev") != without]
    return networks + [IPv4Network(text) for text in destinations if text != "default"]


def set_link(name: str, *, up: bool, pid: int) -> None:
    run_ip([f"link set {name} {'up' if up else 'down'}"], pid=pid)


def remove_link(name: str, *, pid: int | None = None) -> None:
    """Remove a link if it exists. It may outlive the namespace of its other end for a moment."""
    subprocess.run([*enter_network(pid), "ip", "link", "delete", name], capture_output=True, check=False)

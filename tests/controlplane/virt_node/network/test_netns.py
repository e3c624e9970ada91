# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A masqueraded guest's network in real namespaces: world <-> Pod (eth0, bridge, rules) <-> guest."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyroute2 import IPRoute

from controlplane.links.node.messages import Masquerade, Port
from controlplane.virt_node.network import links, netns, nft
from controlplane.virt_node.workers import Workers
from tests.controlplane.virt_node.namespaces import Namespace, cable

pytestmark = pytest.mark.root

WORLD, POD = "198.51.100.1", "198.51.100.2"
PLAIN = Masquerade("10.0.2.0/24")


async def set_up(namespace: Namespace, wanted: Masquerade = PLAIN) -> links.PodInterface:
    """Set the network up like virt-node: in a worker thread that ends afterwards."""
    return await Workers().run("pod", lambda: netns.set_up(nullcontext(namespace.fd), wanted))


@dataclass
class Wires:
    world: Namespace
    pod: Namespace
    guest: Namespace

    async def set_up(self, wanted: Masquerade = PLAIN) -> links.PodInterface:
        """Set the Pod up and connect a guest to its bridge: a veth instead of a tap with QEMU."""
        pod = await set_up(self.pod, wanted)
        cable(self.pod, "plug", self.guest, "eth0")
        self.pod.enslave("plug", "k6t-eth0")
        self.guest.address("eth0", str(wanted.network.guest_interface), gateway=str(wanted.network.gateway))
        return pod


@pytest.fixture
def wires() -> Iterator[Wires]:
    new = Wires(Namespace(), Namespace(), Namespace())
    cable(new.world, "cable", new.pod, "eth0", mtu=1400)
    new.world.address("cable", f"{WORLD}/24")
    new.pod.address("eth0", f"{POD}/24", gateway=WORLD)
    yield new
    for namespace in (new.world, new.pod, new.guest):
        namespace.close()


def link_address(interface: str) -> bytes:
    with IPRoute() as route:
        (link,) = route.get_links(ifname=interface)
        return bytes.fromhex(link.get_attr("IFLA_ADDRESS").replace(":", ""))


def exchange(server: socket.socket, client: socket.socket) -> str:
    """Send a word over a connection and return the client's address as the server sees it."""
    with client:
        accepted, (host, _port) = server.accept()
        with accepted:
            client.sendall(b"word")
            assert accepted.recv(4) == b"word"
    return str(host)


async def test_a_guest_reaches_the_world_with_the_pods_address(wires: Wires) -> None:
    await wires.set_up()
    with wires.world.listen(80) as server:
        assert exchange(server, wires.guest.connect(WORLD, 80)) == POD


async def test_probes_of_the_pods_localhost_reach_the_guest(wires: Wires) -> None:
    await wires.set_up()
    with wires.guest.listen(8080) as server:
        assert exchange(server, wires.pod.connect("127.0.0.1", 8080)) == "10.0.2.1"


async def test_ports_that_are_not_listed_stay_with_the_pod(wires: Wires) -> None:
    await wires.set_up(Masquerade("10.0.2.0/24", (Port("tcp", 8080),)))
    with wires.guest.listen(8080) as guest, wires.pod.listen(9090) as pod:
        assert exchange(guest, wires.world.connect(POD, 8080)) == WORLD
        assert exchange(pod, wires.world.connect(POD, 9090)) == WORLD


def a_frame(target: bytes, source: bytes, to: str, sender: str, port: int, word: bytes) -> bytes:
    """Return a UDP datagram as raw bytes, to any address: a guest can bypass its own kernel."""
    body = struct.pack("!4H", 4711, port, 8 + len(word), 0) + word
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, 17, 0, *map(socket.inet_aton, (sender, to)))
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    return target + source + b"\x08\x00" + head[:10] + struct.pack("!H", checksum) + head[12:] + body


def heard_of_a_guest(wires: Wires, to: str, sender: str = "10.0.2.2") -> bytes:
    """Let the guest send "probe" to an address of the Pod, then "end" correctly. Return what arrives."""

    def send(to: str, sender: str, word: bytes) -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
            wire.bind(("eth0", 0))
            own = wire.getsockname()[4]
            wire.send(a_frame(wires.pod.run(lambda: link_address("k6t-eth0")), own, to, sender, 9999, word))

    def say(word: bytes, to: str = "10.0.2.1", sender: str = "10.0.2.2") -> None:
        wires.guest.run(lambda: send(to, sender, word))

    received = b""
    with wires.pod.listen(9999, socket.SOCK_DGRAM) as server:
        server.settimeout(0.2)
        for _unused in range(50):  # a port of a bridge needs some time to forward
            say(b"begin")
            with suppress(TimeoutError):
                received = server.recv(16)
                break
        say(b"probe", to, sender)
        say(b"end")
        server.settimeout(5)
        while not received.endswith(b"end"):
            received += server.recv(16)
    return received.replace(b"begin", b"")


LOCAL = ["127.0.0.1", "127.255.255.254"]


@pytest.mark.parametrize("to", LOCAL)
async def test_a_guest_does_not_reach_the_pods_localhost(wires: Wires, to: str) -> None:
    """Servers on the Pod's localhost (of a sidecar or the launcher) trust every client as part of the Pod."""
    await wires.set_up()
    assert heard_of_a_guest(wires, to) == b"end"


OTHERS = [
    ("10.0.2.77", "10.0.2.1"),
    ("198.51.100.1", POD),
    ("127.0.0.9", "10.0.2.255"),
]


@pytest.mark.parametrize(("sender", "to"), OTHERS)
async def test_a_guest_cannot_spoof_a_source_address_to_its_pod(wires: Wires, sender: str, to: str) -> None:
    """Servers in the Pod trust source addresses: the world's, a neighbour's, their own localhost."""
    await wires.set_up(Masquerade("10.0.2.0/24", (Port("tcp", 80),)))
    assert heard_of_a_guest(wires, to, sender) == b"end"


async def test_a_guest_without_an_address_can_send_dhcp_requests(wires: Wires) -> None:
    """The launcher answers them."""
    await wires.set_up()
    assert heard_of_a_guest(wires, "255.255.255.255", "0.0.0.0") == b"probeend"


async def test_open_connections_survive_a_second_run(wires: Wires) -> None:
    """A restarted virt-handler may set the network up again while the guest runs."""
    await wires.set_up()
    with wires.world.listen(80) as server, wires.guest.connect(WORLD, 80) as client:
        accepted, _unused = server.accept()
        with accepted:
            await set_up(wires.pod)
            client.sendall(b"still")
            assert accepted.recv(5) == b"still"
    assert wires.pod.run(lambda: nft.run("list ruleset")).count("table ip") == 1


def lose(*names: str) -> None:
    with IPRoute() as route:
        for name in names:
            route.link("del", index=route.link_lookup(ifname=name)[0])


def change(name: str, **what: object) -> None:
    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname=name)[0], **what)


def lose_address() -> None:
    with IPRoute() as route:
        route.flush_addr(index=route.link_lookup(ifname="k6t-eth0")[0])


LOSSES: dict[str, Callable[[], object]] = {
    "all rules flushed": lambda: nft.run("flush ruleset"),
    "the table's rules flushed": lambda: nft.run("flush table ip virtops"),
    "one chain flushed": lambda: nft.run("flush chain ip virtops post"),
    "a rule before ours": lambda: nft.run('insert rule ip virtops guard iifname "k6t-eth0" drop'),
    "the bridge deleted": lambda: lose("k6t-eth0"),
    "the bridge down": lambda: change("k6t-eth0", state="down"),
    "the bridge without its address": lose_address,
    "tap and bridge deleted": lambda: lose("tap0", "k6t-eth0"),
    "the tap down": lambda: change("tap0", state="down"),
    "the tap out of its bridge": lambda: change("tap0", master=0),
    "another MTU": lambda: change("tap0", mtu=1200),
    "no forwarding": lambda: Path("/proc/sys/net/ipv4/ip_forward").write_text("0"),
}


def state() -> tuple[object, ...]:
    """Return the state of the guest's network in the calling thread's namespace, without interface indexes."""
    with IPRoute() as route:
        by_name = links._links(route)
        addresses = links._addresses(route).get(by_name["k6t-eth0"].index)
        tap = by_name["tap0"]
        is_plugged = tap.master == by_name["k6t-eth0"].index
    forwards = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    rules = nft.run("list ruleset")
    return rules, addresses, by_name["k6t-eth0"].is_up, (is_plugged, tap.mtu, tap.is_up), forwards


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
async def test_a_second_set_up_restores_lost_configuration(wires: Wires, loss: Callable[[], object]) -> None:
    """Causes are an administrator's flush or a restarted network plugin. Neither sends a notification."""
    await set_up(wires.pod)
    before = wires.pod.run(state)
    wires.pod.run(loss)
    await set_up(wires.pod)
    assert wires.pod.run(state) == before


class Heard:
    """An IPRoute that records the calls to it."""

    def __init__(self, asked: list[str]) -> None:
        self._asked, self._route = asked, IPRoute()

    def __enter__(self) -> Heard:
        return self

    def __exit__(self, *_unused: object) -> None:
        self._route.close()

    def __getattr__(self, name: str) -> object:
        self._asked.append(name)
        return getattr(self._route, name)


async def test_a_correct_configuration_is_read_and_not_written(wires: Wires, monkeypatch: pytest.MonkeyPatch) -> None:
    """The set-up repeats every few minutes for every guest of a node. It works with many unsorted ports."""
    wanted = Masquerade("10.0.2.0/24", tuple(Port("tcp", 1 + number * 7919 % 30000) for number in range(100)))
    await set_up(wires.pod, wanted)
    calls: list[str] = []
    monkeypatch.setattr(nft, "run", lambda commands, run=nft.run: calls.append(commands) or run(commands))
    monkeypatch.setattr(links, "IPRoute", lambda: Heard(calls))
    await set_up(wires.pod, wanted)
    assert calls == ["get_links", "get_addr", "list table ip virtops"]


async def test_the_pods_addresses_and_mtu_are_reported_and_used(wires: Wires) -> None:
    assert await wires.set_up() == links.PodInterface((POD,), 1400, is_tap_open=False)

    def mtus() -> dict[str, int]:
        with IPRoute() as route:
            return {dict(link["attrs"])["IFLA_IFNAME"]: dict(link["attrs"])["IFLA_MTU"] for link in route.get_links()}

    assert {name: mtu for name, mtu in wires.pod.run(mtus).items() if name in ("k6t-eth0", "tap0")} == {
        "k6t-eth0": 1400,
        "tap0": 1400,
    }


async def test_uid_107_opens_the_tap_without_a_capability(wires: Wires) -> None:
    await set_up(wires.pod)

    def attempt() -> int:
        device = os.open("/dev/net/tun", os.O_RDWR)
        # In a child: a change of the uid would affect the whole test process.
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgid(107)
                os.setuid(107)
                fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"tap0", 0x0002 | 0x1000 | 0x4000))
                status = 0
            finally:
                os._exit(status)
        os.close(device)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert wires.pod.run(attempt) == 0


async def test_route_localnet_is_on_only_for_the_bridge(wires: Wires) -> None:
    await wires.set_up()
    values = wires.pod.run(
        lambda: {
            name: Path(f"/proc/sys/net/ipv4/conf/{name}/route_localnet").read_text().strip()
            for name in ("all", "eth0", "k6t-eth0")
        }
    )
    assert values == {"all": "0", "eth0": "0", "k6t-eth0": "1"}


async def test_a_pod_without_eth0_is_an_error() -> None:
    bare = Namespace()
    with pytest.raises(LookupError, match="no interface eth0"):
        await set_up(bare)
    bare.close()


async def test_whether_the_tap_is_open_is_reported(wires: Wires) -> None:
    """If the tap is deleted while its guest runs, a new tap is made, and QEMU still has the old one open."""
    assert (await set_up(wires.pod)).is_tap_open is False
    tap = wires.pod.run(open_tap)
    try:
        assert (await set_up(wires.pod)).is_tap_open is True
        wires.pod.run(lambda: lose("tap0"))
        assert (await set_up(wires.pod)).is_tap_open is False
        assert (await set_up(wires.pod)).is_tap_open is False, "a new tap, which QEMU has not opened"
    finally:
        os.close(tap)


def open_tap() -> int:
    """Open the tap like QEMU."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"tap0", 0x0002 | 0x1000 | 0x4000))
    return device

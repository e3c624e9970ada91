# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the kernel, in a namespace of their own, seen by another library. What is made of them: test_netns.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv4Interface
from typing import Any, TypeVar

import pytest
from pyroute2 import IPRoute

from controlplane.virt_node.network.rtnetlink import Routes
from tests.controlplane.virt_node.namespaces import Namespace

T = TypeVar("T")
MAC = "02:00:00:00:00:77"


@pytest.fixture
def inside() -> Iterator[Namespace]:
    made = Namespace()
    yield made
    made.close()


def ask(inside: Namespace, question: Callable[[Routes], T]) -> T:
    def work() -> T:
        with Routes() as routes:
            return question(routes)

    return inside.run(work)


def seen(inside: Namespace, name: str) -> tuple[dict[str, Any], bool]:
    """Return what another library sees of a link: its attributes, and whether it is up."""

    def work() -> tuple[dict[str, Any], bool]:
        with IPRoute() as route:
            link = route.get_links(route.link_lookup(ifname=name)[0])[0]
            return dict(link["attrs"]), bool(link["flags"] & 1)

    return inside.run(work)


@pytest.mark.root
def test_a_bridge_is_made_as_it_was_asked_for_and_found(inside: Namespace) -> None:
    assert ask(inside, lambda routes: routes.link("br")) is None
    ask(inside, lambda routes: routes.add_bridge("br", MAC, 1432))
    found = ask(inside, lambda routes: routes.link("br"))
    attributes, is_up = seen(inside, "br")

    assert found is not None
    assert found.mtu == attributes["IFLA_MTU"] == 1432
    assert attributes["IFLA_ADDRESS"] == MAC
    assert dict(attributes["IFLA_LINKINFO"]["attrs"])["IFLA_INFO_KIND"] == "bridge"
    assert not is_up


@pytest.mark.root
def test_a_link_is_switched_on_with_an_mtu(inside: Namespace) -> None:
    """In a bridge: test_netns.py, where frames pass through it."""
    ask(inside, lambda routes: routes.add_bridge("br", MAC, 1500))
    link = ask(inside, lambda routes: routes.link("br"))
    assert link is not None
    ask(inside, lambda routes: routes.set_up(link.index, mtu=1400))

    attributes, is_up = seen(inside, "br")
    assert (attributes["IFLA_MTU"], is_up) == (1400, True)


@pytest.mark.root
def test_addresses_of_global_scope_are_listed_ipv4_first_however_many_there_are(inside: Namespace) -> None:
    """More than fit into one answer, and those of other links are none of its."""
    ask(inside, lambda routes: routes.add_bridge("br", MAC, 1500))
    ask(inside, lambda routes: routes.add_bridge("other", MAC, 1500))
    link, other = (ask(inside, lambda routes, name=name: routes.link(name)) for name in ("br", "other"))  # type: ignore[misc]
    assert link is not None
    assert other is not None

    def add(routes: Routes) -> None:
        routes.add_address(other.index, IPv4Interface("10.9.0.1/24"))
        for number in range(1000):
            routes.add_address(link.index, IPv4Interface(f"10.{number // 250}.{number % 250}.1/24"))

    inside.run(lambda: add_ipv6(link.index))
    ask(inside, add)

    found = ask(inside, lambda routes: routes.addresses(link.index))
    assert found[0] == "10.0.0.1"
    assert len(found) == 1001
    assert found[-1] == "fd00::7"


def add_ipv6(index: int) -> None:
    with IPRoute() as route:
        route.addr("add", index=index, address="fd00::7", prefixlen=64)


@pytest.mark.root
def test_what_the_kernel_refuses_is_its_error(inside: Namespace) -> None:
    ask(inside, lambda routes: routes.add_bridge("br", MAC, 1500))
    with pytest.raises(FileExistsError):
        ask(inside, lambda routes: routes.add_bridge("br", MAC, 1500))
    with pytest.raises(OSError, match="No such device"):
        ask(inside, lambda routes: routes.set_up(4711))


@pytest.mark.parametrize("module", ["pyroute2", "sqlite3", "aiohttp", "libvirt", "kubernetes"])
def test_virt_node_loads_nothing_that_it_does_not_need(module: str) -> None:
    """It is on every node, and root."""
    program = f"import sys, controlplane.virt_node.__main__; sys.exit({module!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

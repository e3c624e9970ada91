# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.virt_launcher.dhcp.resolver import Resolver, parse_resolver, search_with


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "search default.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
            Resolver((b"\x0a\x60\0\x0a",), ("default.svc.cluster.local", "svc.cluster.local")),
            id="a Pod's",
        ),
        pytest.param("", Resolver((), ()), id="empty"),
        pytest.param("nameserver 127.0.0.53\nnameserver ::1\nnameserver x\n", Resolver((), ()), id="out of reach"),
        pytest.param("search a\ndomain b\n", Resolver((), ("b",)), id="the last wins"),
        pytest.param("# nameserver 10.0.0.1\n; search x\nnameserver\n", Resolver((), ()), id="comments"),
        pytest.param("search .\n", Resolver((), ()), id="root only"),
        pytest.param("nameserver 10.0.0.1\n" * 9, Resolver((b"\x0a\0\0\1",) * 3, ()), id="at most three"),
    ],
)
def test_the_pods_resolver_configuration_is_read(text: str, expected: Resolver) -> None:
    assert parse_resolver(text) == expected


CLUSTER = ("ns.svc.cozy.local", "svc.cozy.local", "cozy.local")
OTHER = "longer-name.svc.cozy.local"


@pytest.mark.parametrize(
    ("service_domain", "search", "expected"),
    [
        pytest.param("vms.ns.svc", CLUSTER, ("vms.ns.svc.cozy.local", *CLUSTER), id="the cluster's own domain"),
        pytest.param("vms.ns.svc", (OTHER, *CLUSTER), ("vms.ns.svc.cozy.local", OTHER, *CLUSTER), id="dnsConfig"),
        pytest.param("", CLUSTER, CLUSTER, id="no subdomain"),
        pytest.param("vms.ns.svc", ("example.com",), ("example.com",), id="not the cluster's resolver"),
        pytest.param("vms.ns.svc", (), (), id="no search domains"),
        pytest.param(
            "vms.ns.svc", ("vms.ns.svc.a", "ns.svc.a"), ("vms.ns.svc.a", "ns.svc.a"), id="it is there already"
        ),
    ],
)
def test_the_subdomain_is_searched_below_the_namespace(
    service_domain: str, search: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert search_with(service_domain, search) == expected

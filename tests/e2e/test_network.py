# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest behind masquerade: address by DHCP, DNS, traffic in both directions; and refusals without delay."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

USER_DATA = """#!/bin/sh
nslookup kubernetes.default.svc.cluster.local >/dev/null && echo "names: resolved"
nc -w 5 kubernetes.default.svc.cluster.local 443 </dev/null && echo "outbound: connected to a Service by name"
echo "inbound: listening"
while true; do echo "hello from the guest" | nc -l -p 8080; done
"""
ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], 8080), timeout=10) as connection:
    print(connection.makefile().readline().strip())
"""


def test_a_guest_resolves_names_reaches_services_and_is_reached(cluster: Cluster) -> None:
    cluster.apply(a_vm("talker", user_data=USER_DATA))
    vmi = cluster.running("talker")

    with cluster.console(cluster.launcher("talker")["metadata"]["name"]) as console:
        assert "ip=10.0.2.2" in console.expect("virtops-guest: ready")
        console.expect("names: resolved")
        console.expect("outbound: connected to a Service by name")
        console.expect("inbound: listening")
    address = vmi["status"]["interfaces"][0]["ipAddress"]
    assert (
        cluster.eventually(
            lambda: cluster.try_on_node(cluster.nodes[0], ASK, address),
            what="the guest answers on the Pod's address",
        )
        == "hello from the guest"
    )

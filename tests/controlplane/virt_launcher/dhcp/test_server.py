# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from controlplane.api.launch_plan import Dhcp
from controlplane.virt_launcher.dhcp.packet import Lease
from controlplane.virt_launcher.dhcp.server import RateLimit, build_lease

PLAN = Dhcp("k6t-eth0", "02:fd:dc:9e:5b:fb", "10.0.2.2/24", "10.0.2.1", None, "web", "sub.ns.svc")


def test_the_lease_joins_the_plan_and_the_pods_resolver(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 10.96.0.10\nsearch ns.svc.cozy.local b\n")
    assert build_lease(PLAN, mtu=1450, resolver_path=str(tmp_path / "resolv.conf")) == Lease(
        mac=b"\x02\xfd\xdc\x9e\x5b\xfb",
        address=b"\x0a\0\2\2",
        mask=b"\xff\xff\xff\0",
        router=b"\x0a\0\2\1",
        mtu=1450,
        hostname="web",
        servers=(b"\x0a\x60\0\x0a",),
        search=("sub.ns.svc.cozy.local", "ns.svc.cozy.local", "b"),
    )


def test_a_flood_is_limited_to_the_rate() -> None:
    limit = RateLimit(100, now=0.0)
    assert sum(limit.allows(0.0) for _unused in range(1000)) == 100
    assert sum(limit.allows(0.5) for _unused in range(1000)) == 50
    assert sum(limit.allows(1000.0) for _unused in range(1000)) == 100

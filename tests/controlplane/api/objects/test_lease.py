# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from controlplane.api.objects.decode import decode
from controlplane.api.objects.lease import Lease, Renewal, lease_name, node_of


def test_the_lease_is_named_after_its_node() -> None:
    assert lease_name("node-1") == "virt-handler-node-1"
    assert node_of("virt-handler-node-1") == "node-1"
    assert node_of("virt-controller") is None


def test_a_renewal_is_uid_holder_and_time() -> None:
    raw = b"""{"metadata": {"uid": "u", "name": "x"}, "spec":
        {"holderIdentity": "pod", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}}"""

    assert decode(raw, Lease).renewal == Renewal("u", "pod", "2026-01-01T00:00:00.000000Z")
    assert decode(b"{}", Lease).renewal == Renewal("", "", "")

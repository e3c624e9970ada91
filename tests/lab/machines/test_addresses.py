# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address plan."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from lab.errors import LabError
from lab.machines.addresses import MAX_LABS, Addresses, choose_index


def test_second_lab_differs_in_the_network_that_the_host_sees() -> None:
    first, second = Addresses(index=0), Addresses(index=1)
    assert not first.network.overlaps(second.network)
    assert first.host_link != second.host_link
    assert (str(second.control_plane), str(second.node(3)), str(second.host)) == (
        "10.99.1.1",
        "10.99.1.13",
        "10.99.1.254",
    )


def test_node_pod_ranges_do_not_overlap() -> None:
    plan = Addresses(index=0)
    assert not plan.pods(1).overlaps(plan.pods(2))
    assert plan.gateway(2) in plan.pods(2)


@pytest.mark.parametrize(
    ("used", "host", "chosen"),
    [
        pytest.param([], [], 0, id="a free host gets the first"),
        pytest.param([0, 1], [], 2, id="other labs keep theirs"),
        pytest.param([], ["10.99.0.0/16"], None, id="a host that uses all of them has none left"),
        pytest.param([], ["10.99.0.128/25", "192.0.2.0/24"], 1, id="a range the host uses is passed over"),
        pytest.param(list(range(MAX_LABS)), [], None, id="no more than the ranges there are"),
    ],
)
def test_index_is_the_first_that_nobody_uses(used: list[int], host: list[str], chosen: int | None) -> None:
    networks = [IPv4Network(text) for text in host]
    if chosen is None:
        with pytest.raises(LabError, match="no free address range"):
            choose_index(used=used, host_networks=networks)
    else:
        assert choose_index(used=used, host_networks=networks) == chosen

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address plan."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from lab.errors import LabError
from lab.machines.addresses import MAX_LABS, Addresses, choose_index


def test_labs_have_separate_networks_on_the_host() -> None:
    first, second = Addresses(index=0), Addresses(index=1)
    assert not first.network.overlaps(second.network)
    assert first.host_link != second.host_link
    assert (str(second.control_plane), str(second.node(3)), str(second.host)) == (
        "10.99.1.1",
        "10.99.1.13",
        "10.99.1.254",
    )


def test_pod_ranges_of_nodes_do_not_overlap() -> None:
    plan = Addresses(index=0)
    assert not plan.pods(1).overlaps(plan.pods(2))
    assert plan.gateway(2) in plan.pods(2)


@pytest.mark.parametrize(
    ("used", "host", "chosen"),
    [
        pytest.param([], [], 0, id="the first on a free host"),
        pytest.param([0, 1], [], 2, id="the next beside other labs"),
        pytest.param([], ["10.99.0.0/16"], None, id="none if the host uses all ranges"),
        pytest.param([], ["10.99.0.128/25", "192.0.2.0/24"], 1, id="not a range that the host uses"),
        pytest.param(list(range(MAX_LABS)), [], None, id="none if all are used"),
    ],
)
def test_the_first_unused_index_is_chosen(used: list[int], host: list[str], chosen: int | None) -> None:
    networks = [IPv4Network(text) for text in host]
    if chosen is None:
        with pytest.raises(LabError, match="no free address range"):
            choose_index(used=used, host_networks=networks)
    else:
        assert choose_index(used=used, host_networks=networks) == chosen

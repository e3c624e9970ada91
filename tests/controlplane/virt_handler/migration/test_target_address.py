# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which target addresses a source accepts, as a table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.api.objects.migration_state import MigrationState
from controlplane.links.handler import ADDRESS
from controlplane.virt_handler.launchers.ports import Failed
from controlplane.virt_handler.migration.sender import Sender
from controlplane.virt_handler.migration.target_address import address_of, refuse_address
from tests.controlplane.virt_handler.builders import NODE, OTHER

SOURCE: dict[str, Any] = {
    "metadata": {"annotations": {ADDRESS: "10.244.1.9:8443"}},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "node-1"}]
    },
}
TARGET: dict[str, Any] = {"metadata": {"annotations": {ADDRESS: "10.244.2.9:8443"}}}
NO_ADDRESS = "it is not an IP address"
NO_HOST = "it is not the address of another host"
OWN = "it is this node's own address"
NOT_KNOWN = "its virt-handler has published another address on the Node"


@pytest.mark.parametrize(
    ("said", "alone", "in_network"),
    [
        ("10.244.2.9", "", ""),
        ("172.16.0.2", NOT_KNOWN, ""),
        ("fd00::2", NOT_KNOWN, ""),
        ("10.244.1.9", OWN, OWN),
        ("192.0.2.1", OWN, OWN),
        *(
            (address, NO_HOST, NO_HOST)
            for address in ("127.0.0.1", "0.0.0.0", "::1", "::ffff:10.244.2.9", "169.254.169.254")
        ),
        *(
            (address, NO_ADDRESS, NO_ADDRESS)
            for address in ("localhost", "node-2", "", "10.244.2.9:22", "[::1]", "fd00::2%eth0")
        ),
    ],
)
def test_a_target_address_is_accepted_or_refused(said: str, alone: str, in_network: str) -> None:
    assert refuse_address(said, SOURCE, TARGET, has_network=False) == alone
    assert refuse_address(said, SOURCE, TARGET, has_network=True) == in_network


def test_an_address_that_the_target_node_does_not_announce_is_refused() -> None:
    for silent in ({}, {"metadata": {}}, {"metadata": {"annotations": {ADDRESS: "here"}}}):
        assert refuse_address("10.244.2.9", {}, silent, has_network=False) == NOT_KNOWN
    six = {"metadata": {"annotations": {ADDRESS: "[fd00::9]:8443"}}}
    assert refuse_address("fd00::9", {}, six, has_network=False) == ""


class Nodes:
    """An API server with two Nodes."""

    async def get(self, _unused: object, key: Any) -> dict[str, Any]:
        return {NODE: SOURCE, OTHER: TARGET}[key.name]


def to(address: str) -> MigrationState:
    return MigrationState(
        source_node=NODE, target_node=OTHER, target_node_address=address, target_direct_migration_node_ports={"4711": 0}
    )


def test_a_refusal_names_the_node_and_its_address() -> None:
    assert address_of(to("10.244.2.9"), SOURCE, TARGET, has_network=False) == "10.244.2.9"
    with pytest.raises(
        Failed, match=f"node {OTHER} published address localhost for the migration: it is not an IP address"
    ):
        address_of(to("localhost"), SOURCE, TARGET, has_network=True)


async def test_a_refused_address_is_not_dialled() -> None:
    sender: Any = Sender
    sending = sender(None, None, Nodes(), None, directory="", has_network=lambda: False)
    order: Any = SimpleNamespace(moving=to("127.0.0.1"), pod_uid="source-pod")
    with pytest.raises(Failed, match=NO_HOST):
        await sending.send(order)

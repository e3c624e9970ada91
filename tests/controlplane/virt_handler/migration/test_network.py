# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where migrations are waited for. With real interfaces, in a network namespace of a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from controlplane.virt_handler.incoming.ports import NoMigrationAddress
from controlplane.virt_handler.migration.network import waiting_address

POD = "10.244.1.9"
ASKED = f"from controlplane.virt_handler.migration.network import waiting_address as w; print(w({POD!r}, 'net/one'))"

MADE = "ip link add migration0 type veth peer name far; ip link set migration0 up; ip link set far up"


def test_without_a_network_of_its_own_it_is_the_pod_s() -> None:
    assert waiting_address(POD, interface="migration-none") == POD


def test_a_chosen_network_that_is_not_there_is_not_replaced_by_another() -> None:
    with pytest.raises(
        NoMigrationAddress, match=r"-none, .*\(control_plane_migration_network: net/one\): see that Multus"
    ):
        waiting_address(POD, "net/one", interface="migration-none")


@pytest.mark.root
@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["192.0.2.7/24"], "192.0.2.7"),
        (["2001:db8::7/64"], "2001:db8::7"),
        (["2001:db8::7/64", "192.0.2.7/24"], "192.0.2.7"),
    ],
    ids=["IPv4", "IPv6", "both"],
)
def test_the_network_s_address_is_taken(
    addresses: list[str], expected: str, in_namespace: Callable[[str], str]
) -> None:
    made = [f"ip address add {one} dev migration0{' nodad' * (':' in one)}" for one in addresses]

    assert in_namespace("; ".join([MADE, *made])) == expected


@pytest.mark.root
def test_an_address_of_the_link_alone_is_none(in_namespace: Callable[[str], str]) -> None:
    said = in_namespace(MADE)

    assert "NoPlace" in said


@pytest.fixture
def in_namespace() -> Callable[[str], str]:
    """Return what is said where some commands were run: the last line."""

    def run(commands: str) -> str:
        script = f'set -e; {commands}; exec "$1" -c "$2"'
        command = ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, ASKED]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return (done.stdout + done.stderr).strip().splitlines()[-1]

    return run

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address on which a target waits for migrations. Real interfaces, in a network namespace of a child process."""

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


def test_without_a_migration_network_the_pod_address_is_used() -> None:
    assert waiting_address(POD, interface="migration-none") == POD


def test_a_missing_migration_network_is_an_error() -> None:
    with pytest.raises(
        NoMigrationAddress, match=r"-none, .*\(control_plane_migration_network: net/one\): check that Multus"
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
def test_the_address_of_the_migration_network_is_used(
    addresses: list[str], expected: str, in_namespace: Callable[[str], str]
) -> None:
    commands = [f"ip address add {address} dev migration0{' nodad' * (':' in address)}" for address in addresses]

    assert in_namespace("; ".join([MADE, *commands])) == expected


@pytest.mark.root
def test_a_link_local_address_does_not_count(in_namespace: Callable[[str], str]) -> None:
    output = in_namespace(MADE)

    assert "NoMigrationAddress" in output


@pytest.fixture
def in_namespace() -> Callable[[str], str]:
    """Return a runner of commands in a new network namespace. It returns the last line of output."""

    def run(commands: str) -> str:
        script = f'set -e; {commands}; exec "$1" -c "$2"'
        command = ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, ASKED]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return (done.stdout + done.stderr).strip().splitlines()[-1]

    return run

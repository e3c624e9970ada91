# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial console, screen and ports of a real guest through the API server. Across a migration: test_migration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controlplane.links.streams import ENDED, TAKEN_OVER
from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm, serves_commands, with_grace
from tests.e2e.streams import refusal, stream

pytestmark = pytest.mark.lab

NAME = "watched"


@pytest.fixture(scope="module")
def machine(cluster: Cluster) -> Iterator[Cluster]:
    cluster.apply(with_grace(a_vm(NAME, user_data=serves_commands(hello="true")), 0))
    cluster.running(NAME)
    yield cluster
    cluster.kubectl("delete", "vm", NAME)


def test_a_user_logs_in_on_the_console_and_a_later_one_takes_over(machine: Cluster) -> None:
    with stream(machine.kubeconfig, NAME, "console") as console:
        console.expect(b"login:")  # opened before the guest has booted
        console.send(b"root\n")
        console.expect(b"Password:")
        console.send(b"virtops\n")
        console.expect(b"# ")
        console.send(b"echo $((6 * 7))\n")
        console.expect(b"42")

        with stream(machine.kubeconfig, NAME, "console") as later:
            assert console.end() == (TAKEN_OVER, "taken over by lab-admin")
            later.send(b"\n")
            later.expect(b"# ")


def test_the_screen_speaks_vnc(machine: Cluster) -> None:
    with stream(machine.kubeconfig, NAME, "vnc") as screen:
        screen.expect(b"RFB 003.008\n")


def test_a_port_of_the_guest_is_reached_without_a_service(machine: Cluster) -> None:
    machine.run_in_guest(NAME, "hello")
    with stream(machine.kubeconfig, NAME, "portforward/8080") as port:
        port.send(b"GET /cgi-bin/hello HTTP/1.0\r\n\r\n")
        port.expect(b"200 OK")
        assert port.end()[0] == ENDED
    code, body = refusal(machine.kubeconfig, NAME, "portforward/9")
    assert (code, "nothing listens there" in body) == (500, True)


def test_a_console_ends_with_its_guest(machine: Cluster) -> None:
    with stream(machine.kubeconfig, NAME, "console") as console:
        machine.subresource(NAME, "stop")
        assert console.end() == (ENDED, "the guest has stopped")
    assert refusal(machine.kubeconfig, NAME, "console")[0] in (400, 404)

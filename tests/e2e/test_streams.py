# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial console, screen and ports of a real guest through the API server. Across a migration: test_migration."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import pytest
from kubevirt_api.close_codes import ENDED, TAKEN_OVER

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm, serves_commands, with_grace
from tests.e2e.streams import get, refusal, stream

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


def test_a_screenshot_shows_what_is_on_the_screen(machine: Cluster) -> None:
    code, content_type, png = get(machine.kubeconfig, NAME, "vnc/screenshot?moveCursor=true")

    assert (code, content_type) == (200, "image/png"), png
    width, height, pixels = decoded(png)
    assert len(pixels) == height * (1 + 3 * width) > 100_000
    row = 1 + 3 * width
    assert any(any(pixels[start + 1 : start + row]) for start in range(0, len(pixels), row)), "it is not all black"


def test_a_screenshot_of_a_machine_that_does_not_run_says_why(machine: Cluster) -> None:
    code, content_type, text = get(machine.kubeconfig, "absent", "vnc/screenshot")

    assert (code, content_type) == (500, "text/plain")
    assert b"cannot take a screenshot of virtualmachineinstance default/absent" in text


def decoded(png: bytes) -> tuple[int, int, bytes]:
    """Return width, height and rows of a PNG that virt-handler made; each row begins with its filter."""
    width, height = struct.unpack_from(">II", png, 16)
    (length,) = struct.unpack_from(">I", png, 33)
    return width, height, zlib.decompress(png[41 : 41 + length])


def test_a_console_begins_with_what_was_printed_before(machine: Cluster) -> None:
    machine.run_in_guest(NAME, "hello")  # it has booted
    with stream(machine.kubeconfig, NAME, "console?backlog=true") as console:
        console.expect(b"login:")


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

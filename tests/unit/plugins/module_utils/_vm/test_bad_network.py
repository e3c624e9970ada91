# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hundred tasks through a proxy that fails two of five requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import transport, waiter
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}


def an_answer(status: str, kind: str, text: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return head.encode() + text


TOO_MANY = an_answer("429 Too Many Requests", "text/plain", b"slow down\n")
NO_BACKEND = an_answer("502 Bad Gateway", "text/html", b"<html>no backend</html>")
HUNG_UP = b""
OF_READS = (TOO_MANY, NO_BACKEND, HUNG_UP)
EMPTY_WATCH = an_answer("200 OK", "application/json", b"")


@pytest.fixture
def in_the_way(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Make each request fail at random, from a fixed seed; pauses take no time."""
    monkeypatch.setattr(transport, "PAUSES_SECONDS", tuple(0.0 for _pause in transport.PAUSES_SECONDS))
    monkeypatch.setattr(waiter, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(waiter, "LAST_PAUSE_SECONDS", 0.001)
    chance = random.Random(5)

    def answer(method: str, path: str) -> bytes | None:
        if chance.random() > 0.4:
            return None
        if method != "GET":
            return TOO_MANY  # whether other writes were applied is unknown
        return EMPTY_WATCH if "watch=" in path else chance.choice(OF_READS)

    world.mischief = answer
    return world


def test_a_hundred_tasks_end_right(in_the_way: World, task: Task) -> None:
    def run() -> list[dict[str, Any]]:
        return [task(name=f"vm-{n}", state="started", wait=True, wait_timeout=60, **MACHINE) for n in range(100)]

    first, second = run(), run()
    assert [item["changed"] for item in first] == [True] * 100
    assert {item["result"]["status"]["printableStatus"] for item in first} == {"Running"}
    assert [item["changed"] for item in second] == [False] * 100

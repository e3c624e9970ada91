# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from controlplane.kube.events import EventSpec, create_event, event_body
from tests.controlplane.kube.virtual import MemoryApi

VMI: dict[str, Any] = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "web", "namespace": "ns", "uid": "u1", "resourceVersion": "5"},
}
CREATED = EventSpec("SuccessfulCreate", "Created virtual machine pod p")


def test_an_event_has_object_reporter_and_time() -> None:
    body = event_body(VMI, CREATED, component="virt-controller", instance="pod-1", now=1_750_000_000.5)

    assert body["involvedObject"]["uid"] == "u1"
    assert body["metadata"]["namespace"] == "ns"
    assert body["metadata"]["name"].startswith("web.")
    assert body["firstTimestamp"] == "2025-06-15T15:06:40Z"
    assert body["source"] == {"component": "virt-controller", "host": "pod-1"}


def test_a_long_name_and_message_fit_the_api() -> None:
    about = {**VMI, "metadata": {**VMI["metadata"], "name": "a" * 253}}

    body = event_body(about, EventSpec("X", "m" * 5000), component="c", instance="i", now=0)

    assert len(body["metadata"]["name"]) <= 253
    assert len(body["message"]) == 1024


async def test_a_retry_creates_no_second_event() -> None:
    api = MemoryApi()

    for now in (1.0, 2.0):
        await create_event(api, VMI, CREATED, component="c", instance="i", now=now)

    assert len(api.objects) == 1


async def test_an_event_of_a_former_object_of_that_name_is_not_reused() -> None:
    """Otherwise the new Event would count as a duplicate, and `kubectl describe` would show none."""
    api = MemoryApi()

    for uid in ("u1", "u2"):
        about = {**VMI, "metadata": {**VMI["metadata"], "uid": uid}}
        await create_event(api, about, CREATED, component="c", instance="i", now=1.0)

    assert sorted(object_["involvedObject"]["uid"] for object_ in api.objects.values()) == ["u1", "u2"]


async def test_the_key_of_an_event_is_unique_per_message() -> None:
    api = MemoryApi()

    for once in ("1", "2"):
        await create_event(api, VMI, EventSpec("Started", "again", once=once), component="c", instance="i", now=1)

    assert len(api.objects) == 2

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher that claims to be another, and one that triggers a bug: only its own VMI suffers."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.hypervisor.events import LifecycleChanged
from controlplane.virt_handler.launchers import registry as registry_module
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.tools import Tools
from tests.controlplane.virt_handler.builders import (
    NODE,
    POD_UID,
    RUNNING,
    VMI_UID,
    domain_text,
    pod_object,
    vmi_object,
)
from tests.controlplane.virt_handler.fakes import FakeCache, FakeClock, FakeConnection, FakeLibvirtd, until
from tests.controlplane.virt_handler.launchers.test_connection import Node as ANode
from tests.controlplane.virt_handler.stage import Node

OTHER = Key("default", "other")
OTHER_UID, OTHER_POD = "0000bbbb-1111-2222-3333-444444444444", "cccc0000-1111-2222-3333-444444444444"


def anothers_vmi() -> dict[str, Any]:
    """Return another VMI of this node, whose launcher is not up yet."""
    body = vmi_object("Scheduled")
    body["metadata"] |= {"name": OTHER.name, "uid": OTHER_UID}
    body["status"]["activePods"] = {OTHER_POD: NODE}
    return body


def anothers_pod() -> dict[str, Any]:
    body = pod_object(OTHER_POD, owner_uid=OTHER_UID)
    body["metadata"]["ownerReferences"][0]["name"] = OTHER.name
    return body


@pytest.mark.root  # sockets of uid 107
async def test_a_launcher_affects_only_the_vmi_that_owns_its_pod(node: Node) -> None:
    """Its domain has another name, its metadata name another VMI, and its events are about another domain."""
    node.pods.put(anothers_pod())
    node.api.store(anothers_vmi())
    before = copy.deepcopy(node.api.objects[OTHER]["status"])
    node.libvirtd.names = {VMI_UID, OTHER_UID}
    theirs = domain_text().replace(VMI_UID, OTHER_UID).replace(POD_UID, OTHER_POD).replace('"web"', '"other"')
    guest = await FakeConnection(node.libvirtd).define(theirs)
    guest.life = RUNNING
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    node.hand_over()
    node.pods.put(pod_object())
    await until(lambda: guest.descriptions == 1, "a look at what it serves")
    for word in ("started", "stopped", "crashed"):
        node.libvirtd.tell(LifecycleChanged(OTHER_UID, word))
        await asyncio.sleep(0.01)
    assert node.phase == "Scheduled", "and its own does not run by that"

    (await FakeConnection(node.libvirtd).define(domain_text())).life = RUNNING
    node.libvirtd.hang_up()
    await until(lambda: node.phase == "Running", "its own guest, once it is that")
    assert node.api.objects[OTHER]["status"] == before


async def test_a_bug_triggered_by_one_launcher_costs_only_its_own_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guest that triggered a bug ended the whole virt-handler."""
    monkeypatch.setattr(registry_module, "_AFTER_BUG_SECONDS", 0.01)
    node, pods, stumbles = ANode(), FakeCache(), []
    reach: Callable[[str], Awaitable[Any]] = node.open_socket

    async def open_socket(pod_uid: str) -> Any:
        if pod_uid == POD_UID:
            stumbles.append(pod_uid)
            raise ZeroDivisionError
        return await reach(pod_uid)

    node.open_socket = open_socket  # type: ignore[method-assign]
    registry = Registry(pods, Tools(node, FakeClock(), FakeLibvirtd(VMI_UID).connect), lambda _unused: None)
    following = asyncio.create_task(registry.run())
    pods.put(pod_object())
    await until(lambda: len(stumbles) >= 3, "one that is tried again")
    pods.put(anothers_pod())
    session = registry.session(OTHER_POD)
    assert session is not None
    await until(lambda: session.launcher().status.is_here, "the neighbour")

    assert not following.done()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following

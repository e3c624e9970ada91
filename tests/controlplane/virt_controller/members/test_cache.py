# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members as the cache last decoded them."""

from __future__ import annotations

import msgspec

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.kube.cache import Store
from controlplane.virt_controller.members.cache import MemberCache
from controlplane.virt_controller.replicaset.member import read_member
from tests.controlplane.virt_controller.small_world import SmallWorld


def test_an_unchanged_member_is_decoded_once_and_a_deleted_one_is_dropped() -> None:
    store, key = Store(VIRTUAL_MACHINE_INSTANCE), Key("default", "a")
    members = MemberCache(store, read_member)

    def put(version: int) -> None:
        meta = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
        store.put(msgspec.json.encode({"metadata": meta}))

    put(1)
    (first,) = members.read([key])
    assert members.read([key])[0] is first
    put(2)
    (second,) = members.read([key])
    assert second.metadata.resource_version == "2"
    store.remove(key)
    assert members.read([key]) == ()
    assert not members


async def test_an_own_write_is_read_before_the_watch_has_caught_up() -> None:
    world, key = SmallWorld(), Key("default", "a")
    world.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": "a"}})
    members = MemberCache(world.overlays[VIRTUAL_MACHINE_INSTANCE], read_member)
    world.start()
    assert [member.metadata.labels for member in members.read([key])] == [{}]
    await world.api.patch(VIRTUAL_MACHINE_INSTANCE, key, {"metadata": {"labels": {"x": "1"}}})
    assert [member.metadata.labels for member in members.read([key])] == [{"x": "1"}]

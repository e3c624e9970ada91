# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The little that is read of an instance."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.kube.cache import Store
from controlplane.virt_controller.replicaset.member import Members, fingerprint, read_member
from tests.controlplane.virt_controller.builders import STAMP
from tests.controlplane.virt_controller.replicaset.stage import POD_GOES, READY
from tests.controlplane.virt_controller.small_world import SmallWorld

OWNER = {"uid": "o", "controller": True}
META = {"name": "a", "uid": "u", "labels": {"x": "1"}, "resourceVersion": "1"}
BASE: dict[str, Any] = {"metadata": META, "status": {"phase": "Running"}}


def changed(part: str, **fields: Any) -> dict[str, Any]:
    return {**BASE, part: {**BASE[part], **fields}}


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        pytest.param(changed("metadata", resourceVersion="2"), False, id="version"),
        pytest.param(changed("metadata", annotations={"a": "b"}), False, id="annotations"),
        pytest.param(changed("status", interfaces=[{"ipAddress": "10.0.0.1"}]), False, id="interfaces"),
        pytest.param(changed("status", phase="Scheduled"), False, id="a phase among those that count"),
        pytest.param(changed("status", phase="Failed"), True, id="over"),
        pytest.param(changed("status", conditions=[READY]), True, id="ready"),
        pytest.param(changed("status", conditions=[POD_GOES]), True, id="losing its Pod"),
        pytest.param(changed("metadata", labels={"x": "2"}), True, id="labels"),
        pytest.param(changed("metadata", deletionTimestamp=STAMP), True, id="going"),
        pytest.param(changed("metadata", ownerReferences=[OWNER]), True, id="owners"),
        pytest.param(changed("metadata", uid="v"), True, id="another of the name"),
    ],
)
def test_only_what_a_set_decides_by_is_in_the_gist(other: dict[str, Any], differs: bool) -> None:
    before, after = (fingerprint(read_member(msgspec.json.encode(one))) for one in (BASE, other))
    assert (before != after) is differs


@pytest.mark.parametrize(("status", "is_losing"), [("False", True), ("True", False)])
def test_an_instance_that_is_ready_loses_no_pod_whatever_the_reason_says(status: str, is_losing: bool) -> None:
    told = changed("status", conditions=[{**POD_GOES, "status": status}])
    assert read_member(msgspec.json.encode(told)).is_losing_its_pod is is_losing


def test_what_has_not_changed_is_not_decoded_again_and_what_is_gone_not_kept() -> None:
    store = Store(VIRTUAL_MACHINE_INSTANCE)
    members, key = Members(store, read_member), Key("default", "a")

    def put(version: int) -> None:
        meta = {**META, "namespace": "default", "resourceVersion": str(version)}
        store.put(msgspec.json.encode({**BASE, "metadata": meta}))

    put(1)
    (first,) = members.read([key])
    assert members.read([key])[0] is first
    put(2)
    (second,) = members.read([key])
    assert second.metadata.resource_version == "2"
    store.remove(key)
    assert members.read([key]) == ()
    assert not members


async def test_what_this_process_has_written_is_read_before_the_cache_has_it() -> None:
    world, key = SmallWorld(), Key("default", "a")
    world.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": "a"}})
    members = Members(world.overlays[VIRTUAL_MACHINE_INSTANCE], read_member)
    world.start()
    assert [one.metadata.labels for one in members.read([key])] == [{}]
    await world.api.patch(VIRTUAL_MACHINE_INSTANCE, key, {"metadata": {"labels": {"x": "1"}}})
    assert [one.metadata.labels for one in members.read([key])] == [{"x": "1"}]

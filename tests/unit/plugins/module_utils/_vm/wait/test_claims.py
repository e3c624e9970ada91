# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the deletion of a VM's claims."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    BadArgument,
    Forbidden,
    TimedOut,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait.claims import deleted_with
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import FORBIDDEN, Refused, World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "run_strategy": "Halted", "data_volume_templates": [{"metadata": {"name": "root"}}]}
GONE = {"state": "absent", "wait": True, "wait_timeout": 1, "wait_for_claims": True}


def claim(world: World, name: str, owner: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """Create a claim; owner: kind, name and UID."""
    owners = [{"kind": owner[0], "name": owner[1], "uid": owner[2]}] if owner else []
    return world.put(
        "persistentvolumeclaims", {"metadata": {"name": name, "namespace": "default", "ownerReferences": owners}}
    )


def volume(world: World, owner_uid: str) -> None:
    owners = [{"kind": "VirtualMachine", "name": "web", "uid": owner_uid}]
    metadata = {"name": "root", "namespace": "default", "uid": "dv", "ownerReferences": owners}
    world.put("datavolumes", {"metadata": metadata})


@pytest.mark.parametrize(
    ("owner", "volume_of", "goes"),
    [
        pytest.param(("DataVolume", "root", "dv"), "its own", True, id="of its DataVolume"),
        pytest.param(("DataVolume", "root", "dv"), None, True, id="of its DataVolume, which is gone already"),
        pytest.param(("VirtualMachine", "web", "its own"), None, True, id="its own, when CDI has cleaned up"),
        pytest.param(("DataVolume", "root", "dv"), "another", False, id="of a DataVolume that is another's"),
        pytest.param(("VirtualMachine", "web", "another"), None, False, id="of a former machine of that name"),
        pytest.param(None, "its own", False, id="nobody's"),
    ],
)
def test_claims_that_the_vm_owns_are_deleted(
    world: World, task: Task, api: Api, owner: tuple[str, str, str] | None, volume_of: str | None, goes: bool
) -> None:
    task(**MACHINE)
    uid = world.vm("web")["metadata"]["uid"]
    named = {"its own": uid, "another": "other"}
    claim(world, "root", owner and (owner[0], owner[1], named.get(owner[2], owner[2])))
    claim(world, "beside", ("VirtualMachine", "web", uid))
    if volume_of is not None:
        volume(world, named[volume_of])

    results = [item["metadata"]["name"] for item in deleted_with(api, world.vm("web"), "default")]

    assert results == (["root"] if goes else [])


def test_a_deletion_waits_for_the_claims_with_the_option(world: World, task: Task) -> None:
    task(**MACHINE)
    claim(world, "root", ("VirtualMachine", "web", world.vm("web")["metadata"]["uid"]))

    def slowly() -> None:
        for _attempt in range(5000):
            if any(plural == "persistentvolumeclaims" for plural, *_rest in world.watchers):
                break
            threading.Event().wait(0.001)
        world.drop("persistentvolumeclaims", "default", "root")

    thread = threading.Thread(target=slowly)
    thread.start()
    assert task(**{**GONE, "wait_timeout": 10})["changed"] is True
    thread.join()
    assert world.objects == {}


def test_a_claim_that_stays_is_named(world: World, task: Task) -> None:
    task(**MACHINE)
    claim(world, "root", ("VirtualMachine", "web", world.vm("web")["metadata"]["uid"]))

    with pytest.raises(TimedOut, match="default/web is gone, but its claim root still exists after 1 s") as caught:
        task(**GONE)

    assert caught.value.facts["changed"] is True


def test_without_the_option_claims_are_not_waited_for(world: World, task: Task) -> None:
    task(**MACHINE)
    claim(world, "root", ("VirtualMachine", "web", world.vm("web")["metadata"]["uid"]))

    assert task(**{**GONE, "wait_for_claims": False})["changed"] is True
    assert not [path for _method, path in world.requests if "persistentvolumeclaims" in path]


def test_without_the_right_to_read_claims_the_task_fails(world: World, task: Task) -> None:
    """A task with the option must not report success without the check."""
    task(**MACHINE)
    original = world._existing

    def existing(plural: str, *rest: str) -> dict[str, Any]:
        if plural == "persistentvolumeclaims":
            raise Refused(403, "Forbidden", "no")
        return original(plural, *rest)

    world._existing = existing  # type: ignore[method-assign]
    with pytest.raises(Forbidden) as caught:
        task(**GONE)
    assert caught.value.facts["changed"] is True, "it was deleted all the same"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wait": False}, "set wait=true"),
        ({"state": "stopped"}, "state=absent"),
        ({"delete_options": {"propagationPolicy": "Orphan"}}, "Orphan"),
    ],
)
def test_contradicting_options_are_refused(task: Task, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=f"wait_for_claims.*{words}"):
        task(**{**GONE, **options})


ORPHAN = {"delete_options": {"propagationPolicy": "Orphan"}}
ENTRIES = {**GONE, "state": "present"}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([{"name": "a", "state": "absent"}, {"name": "b", "state": "absent", **ORPHAN}], "default/b.*Orphan"),
        ([{"name": "a", "state": "started"}, {"name": "b", "state": "stopped"}], "state=absent"),
    ],
)
def test_contradicting_options_of_an_entry_are_refused_before_any_request(
    world: World, task: Task, entries: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(BadArgument, match=f"wait_for_claims.*{words}"):
        task(**ENTRIES, vms=entries)
    assert world.requests == []


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([], id="none"),
        pytest.param([{"name": "a", "state": "absent"}, {"name": "b", "state": "stopped", **MACHINE}], id="b"),
    ],
)
def test_entries_without_a_deletion_ignore_claims(task: Task, entries: list[dict[str, Any]]) -> None:
    assert "results" in task(**ENTRIES, vms=entries)


@pytest.mark.parametrize(
    "refused", [pytest.param("claims/of-a", id="when it is read"), pytest.param("name%3Dof-a", id="when it is watched")]
)
def test_an_unreadable_claim_fails_only_its_own_vm(world: World, task: Task, refused: str) -> None:
    for name in ("a", "b"):
        task(**{**MACHINE, "name": name, "data_volume_templates": [{"metadata": {"name": f"of-{name}"}}]})
    claim(world, "of-a", ("VirtualMachine", "a", world.vm("a")["metadata"]["uid"]))
    world.mischief = lambda _method, path: FORBIDDEN if "persistentvolumeclaims" in path and refused in path else None

    with pytest.raises(VirtError, match="1 of 2 VMs failed") as caught:
        task(**GONE, vms=[{"name": "a"}, {"name": "b"}])

    of_a, of_b = caught.value.facts["results"]
    assert (of_a["failed"], of_a["status"], of_a["changed"]) == (True, 403, True)
    assert (of_b.get("failed", False), of_b["changed"]) == (False, True)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}


def test_entries_may_have_their_own_state(world: World, task: Task) -> None:
    task(vms=[{"name": "vm-0"}, {"name": "vm-1"}], **MACHINE)
    result = task(vms=[{"name": "vm-0", "state": "absent"}, {"name": "vm-1", "state": "stopped"}])
    assert [item["method"] for item in result["results"]] == ["delete", "stop"]
    assert list(world.objects) == [("virtualmachines", "default", "vm-1")]


def test_an_empty_list_changes_nothing(task: Task) -> None:
    assert task(vms=[]) == {"changed": False, "results": []}


def test_the_failure_of_a_single_vm_is_the_error_of_the_task(world: World, task: Task) -> None:
    with pytest.raises(VirtError, match=r"^cannot apply VirtualMachine default/web: spec\.colour"):
        task(name="web", definition={"spec": {"colour": 1, "template": {}}})
    assert world.objects == {}

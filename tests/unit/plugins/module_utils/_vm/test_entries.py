# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option vms, entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import argspec
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import PER_VM
from ansible_collections.virtops.kubevirt.plugins.module_utils.kubevirt_api.names import FURTHER_ATTEMPTS, RUN_TIMEOUT
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}


def test_every_option_of_an_entry_is_used() -> None:
    """One that the argument specification takes and nobody reads is lost without a word."""
    assert set(PER_VM) == set(argspec.vm_spec()["vms"]["options"])


@pytest.mark.parametrize("of_the_task", [False, True])
def test_what_an_entry_says_of_drains_and_attempts_is_in_its_machine(
    world: World, task: Task, of_the_task: bool
) -> None:
    said = {"eviction_strategy": "None", "further_attempts": 3, "run_timeout": 99}
    task(vms=[{"name": "vm-0", **({} if of_the_task else said)}], **MACHINE, **(said if of_the_task else {}))
    template = world.vm("vm-0")["spec"]["template"]
    assert template["spec"]["evictionStrategy"] == "None"
    assert template["metadata"]["annotations"] == {FURTHER_ATTEMPTS: "3", RUN_TIMEOUT: "99"}

    with pytest.raises(VirtError, match="further_attempts"):
        task(vms=[{"name": "vm-0", "further_attempts": -5}], **MACHINE)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading VMs and instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import info
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "cloud_init": {"user_data": "canary", "type": "no_cloud"}}
DEFAULTS: dict[str, Any] = {"label_selectors": [], "field_selectors": [], "wait_timeout": 1, "hidden_fields": ["spec"]}


def test_one_by_name_and_all_of_the_cluster(task: Task, api: Api) -> None:
    task(**MACHINE)
    task(namespace="other", **MACHINE)
    one = info.virtual_machines({**DEFAULTS, "name": "web", "namespace": "default"}, api)
    assert one["api_found"] is True
    assert [vm["metadata"]["namespace"] for vm in one["resources"]] == ["default"]
    assert "spec" not in one["resources"][0]
    everywhere = info.virtual_machines({**DEFAULTS, "name": "web"}, api)
    assert len(everywhere["resources"]) == 2
    assert len(info.instances(DEFAULTS, api)["resources"]) == 2


def test_secrets_are_not_shown(task: Task, api: Api) -> None:
    task(**MACHINE)
    assert "canary" not in str(info.virtual_machines({**DEFAULTS, "hidden_fields": []}, api))


def test_absent_and_uninstalled_are_no_errors(world: World, api: Api) -> None:
    assert info.virtual_machines({**DEFAULTS, "name": "web", "namespace": "d"}, api)["resources"] == []
    world.kubevirt_installed = False
    assert info.virtual_machines(DEFAULTS, api) == {"changed": False, "api_found": False, "resources": []}


def test_wait_for_what_does_not_come_fails(api: Api) -> None:
    with pytest.raises(TimedOut, match="is not running after 1 s: it is not there"):
        info.virtual_machines({**DEFAULTS, "name": "web", "namespace": "d", "wait": True}, api)


def test_wait_for_what_is_there(task: Task, api: Api) -> None:
    task(**MACHINE)
    assert len(info.virtual_machines({**DEFAULTS, "namespace": "default", "wait": True}, api)["resources"]) == 1
    assert len(info.instances({**DEFAULTS, "namespace": "default", "wait": True}, api)["resources"]) == 1
    task(state="stopped")
    stopped = {**DEFAULTS, "namespace": "default", "wait": True, "running": False}
    assert len(info.virtual_machines(stopped, api)["resources"]) == 1


def test_running_without_wait_is_refused(api: Api) -> None:
    with pytest.raises(BadArgument, match="set wait=true"):
        info.virtual_machines({**DEFAULTS, "running": True}, api)

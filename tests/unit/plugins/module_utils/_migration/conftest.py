# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three nodes with guests, and calls of kubevirt_migration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import argspec, batch, info
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving

Migrate = Callable[..., dict[str, Any]]


def a_node(name: str, **labels: str) -> dict[str, Any]:
    own = {"kubernetes.io/hostname": name, "kubevirt.io/schedulable": "true", **labels}
    return {"metadata": {"name": name, "labels": own}, "spec": {}}


def a_guest(name: str, node: str = "node-1", namespace: str = "default", **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "LiveMigratable", "status": "True"}]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"domain": {}},
        "status": {"phase": "Running", "nodeName": node, "conditions": conditions, **status},
    }


@pytest.fixture
def world() -> World:
    fake_world = World()
    for name in ("node-1", "node-2", "node-3"):
        fake_world.put("nodes", a_node(name, disks="fast" if name == "node-3" else "slow"))
    for name in ("web", "database"):
        fake_world.put("virtualmachineinstances", a_guest(name))
    return fake_world


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    with serving(world) as url:
        client = Api.connect(Endpoint(server=url))
        yield client
        client.close()


@pytest.fixture
def migrate(api: Api) -> Migrate:
    """Run one task of kubevirt_migration with these options; check_mode and diff are keywords too."""

    def run(*, check_mode: bool = False, diff: bool = False, **options: Any) -> dict[str, Any]:
        named = {} if {"vms", "from_node"} & options.keys() else {"name": "web"}
        where = {} if options.get("from_node") and "name" not in options else {"namespace": "default"}
        checked = ArgumentSpecValidator(argspec.migration_spec()).validate(
            {**where, "wait_timeout": 2, **named, **options}
        )
        assert checked.error_messages == []
        return batch.run(checked.validated_parameters, api, check_mode=check_mode, diff=diff)

    return run


@pytest.fixture
def read(api: Api) -> Migrate:
    """Run one task of kubevirt_migration_info."""

    def run(*, check_mode: bool = False, **options: Any) -> dict[str, Any]:
        checked = ArgumentSpecValidator(argspec.migration_info_spec()).validate({"wait_timeout": 2, **options})
        assert checked.error_messages == []
        return info.run(checked.validated_parameters, api, check_mode=check_mode)

    return run

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake cluster, and the calls that a module would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import batch, kinds
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving

Task = Callable[..., dict[str, Any]]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    with serving(world) as url:
        client = Api.connect(Endpoint(server=url))
        yield client
        client.close()


@pytest.fixture
def task(api: Api) -> Task:
    """Run one task of kubevirt_vm with these options; check_mode, diff and shows_console are keywords too."""
    return _tasks(api, kinds.VM)


@pytest.fixture
def of_instances(api: Api) -> Task:
    """Run one task of kubevirt_vmi."""
    return _tasks(api, kinds.VMI)


@pytest.fixture
def of_sets(api: Api) -> Task:
    """Run one task of kubevirt_replicaset."""
    return _tasks(api, kinds.REPLICA_SET)


@pytest.fixture
def of_pools(api: Api) -> Task:
    """Run one task of kubevirt_pool."""
    return _tasks(api, kinds.POOL)


def _tasks(api: Api, kind: kinds.Kind) -> Task:
    def run(
        *, check_mode: bool = False, diff: bool = False, shows_console: bool = True, **params: Any
    ) -> dict[str, Any]:
        defaults = {"state": "present", "wait_timeout": 2, "hidden_fields": ["metadata.managedFields"]}
        if not kind.list_option or kind.list_option not in params:
            defaults["name"] = "web"
        whole = {"namespace": "default", **defaults, **params}
        modes = {"check_mode": check_mode, "diff": diff, "shows_console": shows_console}
        return batch.run(whole, api, kind=kind, **modes)

    return run

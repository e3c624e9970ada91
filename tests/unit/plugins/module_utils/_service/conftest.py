# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster with something to expose, and kubevirt_service in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._service import ensure
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving

Expose = Callable[..., dict[str, Any]]


@pytest.fixture
def world() -> World:
    fake_world = World()
    interfaces = [{"name": "default", "ports": [{"port": 22}, {"port": 53, "protocol": "UDP", "name": "dns"}]}]
    machine = {"domain": {"devices": {"interfaces": interfaces}}}
    named = {"name": "web", "namespace": "default"}
    fake_world.put("virtualmachines", {"metadata": dict(named), "spec": {"template": {"spec": machine}}})
    fake_world.put("virtualmachineinstances", {"metadata": {**named, "name": "bare"}, "spec": {"domain": {}}})
    selector = {"matchLabels": {"app": "workers"}}
    fake_world.put(
        "virtualmachineinstancereplicasets", {"metadata": {**named, "name": "workers"}, "spec": {"selector": selector}}
    )
    return fake_world


@pytest.fixture
def expose(world: World) -> Iterator[Expose]:
    """Run one task of kubevirt_service with these options; check_mode and diff are keywords too."""
    with serving(world) as url:
        api = Api.connect(Endpoint(server=url))

        def run(*, check_mode: bool = False, diff: bool = False, **options: Any) -> dict[str, Any]:
            checked = ArgumentSpecValidator(ensure.argument_spec()).validate({"namespace": "default", **options})
            assert checked.error_messages == []
            return ensure.run(checked.validated_parameters, api, check_mode=check_mode, diff=diff)

        yield run
        api.close()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An object that does not exist: what a task says about it first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import kinds, missing
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import Refused, World

Task = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("namespace", "kind", "text"),
    [
        ("default", kinds.VM, "there is no such machine in namespace default; look at its name"),
        ("default", kinds.POOL, "there is no such pool in namespace default; look at its name"),
        ("defualt", kinds.VM, "there is no namespace defualt; look at its name"),
    ],
)
def test_a_missing_namespace_is_called_missing(api: Api, namespace: str, kind: kinds.Kind, text: str) -> None:
    assert missing.reason(api, namespace, kind) == text


def test_an_account_that_cannot_read_namespaces_looks_at_both_names(api: Api, world: World) -> None:
    world.refuse_next = [Refused(403, "Forbidden", "namespaces is forbidden")]
    assert missing.reason(api, "other") == (
        "there is no such machine in namespace other; look at its name and at its namespace"
    )


@pytest.mark.parametrize(
    ("module", "options", "text"),
    [
        pytest.param(
            "task", {"state": "stopped"}, "be stopped: there is no such machine in namespace default", id="stop"
        ),
        pytest.param(
            "task", {"running": True}, "be changed: there is no such machine in namespace default", id="change"
        ),
        pytest.param(
            "task", {"state": "paused"}, "be paused: there is no such machine in namespace default", id="pause"
        ),
        pytest.param(
            "task", {"state": "started", "namespace": "x"}, "started: there is no namespace x;", id="namespace"
        ),
        pytest.param("of_instances", {"state": "frozen"}, "frozen: there is no such instance in", id="instance"),
        pytest.param("of_sets", {"replicas": 2}, "be changed: there is no such replica set in", id="replica set"),
        pytest.param("of_pools", {"replicas": 2}, "be changed: there is no such pool in", id="pool"),
    ],
)
def test_the_message_begins_with_the_misspelt_name(
    request: pytest.FixtureRequest, module: str, options: dict[str, Any], text: str
) -> None:
    run: Task = request.getfixturevalue(module)
    with pytest.raises(BadArgument, match=text):
        run(**options)

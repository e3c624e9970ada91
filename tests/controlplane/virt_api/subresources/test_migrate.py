# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virtualmachines/migrate over real TLS, on a fake API server: the migration that it makes, and its refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from kubevirt_api.names import MIGRATION_FINALIZER, VMI_NAME

from controlplane.api.admission.defaults import default_migration
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import Key
from controlplane.virt_api.subresources.migrate import build_migration
from controlplane.virt_api.subresources.options import MigrateOptions
from tests.controlplane.kube.fake_api import FakeApi, status
from tests.controlplane.virt_api.moving import MIGRATIONS, UNFIT, VM, VMI, made, put_migration, put_vm, put_vmi
from tests.controlplane.virt_api.served import CLIENTS, USER, Served, a_client_pair, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


async def migrate(served: Served, body: bytes = b"") -> tuple[int, Any]:
    path = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachines/web/migrate"
    pair = a_client_pair(served.proxy_authority, usage=CLIENTS)
    return await served.call("PUT", path, pair=pair, headers=USER, body=body)


async def test_migrate_creates_a_migration_of_the_vmi(served: Served) -> None:
    put_vm(served.api)
    put_vmi(served.api)

    assert await migrate(served, b'{"addedNodeSelector": {"disktype": "ssd"}}') == (202, "")

    (migration,) = made(served.api)
    assert migration["metadata"]["generateName"] == "kubevirt-migrate-vm-"
    assert migration["metadata"]["labels"] == {VMI_NAME: "web"}
    assert migration["metadata"]["finalizers"] == [MIGRATION_FINALIZER]
    assert migration["spec"] == {"vmiName": "web", "addedNodeSelector": {"disktype": "ssd"}}
    (review,) = served.reviews
    access = review["resourceAttributes"]
    assert (access["resource"], access["subresource"], access["verb"]) == ("virtualmachines", "migrate", "update")


@pytest.mark.parametrize("name", ["web", "a" * 253])
def test_a_built_migration_has_all_defaults_of_admission(name: str) -> None:
    """Admission exempts our account."""
    body = build_migration(Key("ns", name), MigrateOptions())

    assert default_migration(body, KubeVirtConfiguration(), "seed") is body


async def test_a_dry_run_creates_nothing(served: Served) -> None:
    put_vm(served.api)
    put_vmi(served.api)

    assert (await migrate(served, b'{"dryRun": ["All"]}'))[0] == 202
    (path_written,) = [path for method, path, *_unused in served.api.seen if method == "POST" and MIGRATIONS in path]
    assert "dryRun=All" in path_written


Arrange = Callable[[FakeApi], Any]
REFUSED: dict[str, tuple[tuple[Arrange, ...], int, str]] = {
    "no machine": ((put_vmi,), 404, 'virtualmachine.kubevirt.io "web" not found'),
    "no instance": ((put_vm,), 404, 'virtualmachineinstance.kubevirt.io "web" not found'),
    "another's instance": (
        (put_vm, lambda api: put_vmi(api, owner="another")),
        404,
        'virtualmachineinstance.kubevirt.io "web" not found',
    ),
    "it starts": ((put_vm, lambda api: put_vmi(api, "Scheduled")), 409, "VM is not running"),
    "it is over": ((put_vm, lambda api: put_vmi(api, "Failed")), 409, "VM is not running"),
    "it cannot move": (
        (put_vm, lambda api: put_vmi(api, conditions=[UNFIT])),
        500,
        "Internal error occurred: Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: its disk stays",
    ),
    "it moves": (
        (put_vm, put_vmi, lambda api: put_migration(api, "first", "Running")),
        500,
        "Internal error occurred: in-flight migration detected",
    ),
    "it cannot be read": ((put_vm, lambda api: api.put(VMI, {"spec": 7})), 422, "cannot be read"),
    "the machine cannot be read": ((lambda api: api.put(VM, {"spec": 7}),), 422, "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refusals_have_upstreams_codes(served: Served, case: str) -> None:
    arrange, expected, words = REFUSED[case]
    for change in arrange:
        change(served.api)
    before = made(served.api)

    code, status = await migrate(served)

    assert (code, words in status["message"]) == (expected, True), status
    assert made(served.api) == before


async def test_invalid_options_are_refused(served: Served) -> None:
    put_vm(served.api)
    put_vmi(served.api)

    for body in (b"[]", b'{"addedNodeSelector": 7}', b'{"to": "node-2"}'):
        assert (await migrate(served, body))[0] == 400
    assert made(served.api) == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (status(403, "Forbidden", "exceeded quota"), 500),
        (status(422, "Invalid", "too large"), 500),
        (status(503, "ServiceUnavailable", "away"), 503),
    ],
)
async def test_an_error_of_the_api_server_is_passed_on(served: Served, fault: Any, expected: int) -> None:
    put_vm(served.api)
    put_vmi(served.api)
    served.api.faults.append(("POST", MIGRATIONS, fault))

    code, status = await migrate(served)

    assert (code, fault["message"] in status["message"]) == (expected, True), status


async def test_an_unauthorized_user_learns_nothing_about_the_vm(tmp_path: Path) -> None:
    async with serving(tmp_path, allowed=False) as served:
        code, status = await migrate(served)

        assert (code, 'cannot update resource "virtualmachines/migrate"' in status["message"]) == (403, True)
        assert [path for method, path, *_unused in served.api.seen if method == "GET"] == []

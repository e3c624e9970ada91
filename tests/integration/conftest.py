# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: one real API server for all tests, and Ansible as a user has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import Lab
from lab.cluster.api import Api
from lab.collection import linked_under
from tests.ad_hoc import Result, run_module
from tests.integration.served import serving

NAMESPACED = (
    "kubevirt_migration", "kubevirt_migration_info",
    "kubevirt_pool", "kubevirt_pool_info", "kubevirt_replicaset", "kubevirt_replicaset_info",
    "kubevirt_vm", "kubevirt_vm_info", "kubevirt_vmi",
    "kubevirt_vmi_info", "kubevirt_service",
)  # fmt: skip

Task = Callable[..., Result]


@pytest.fixture(scope="package")
def lab(worker_id: str) -> Iterator[Lab]:
    """One per worker."""
    with serving(f"modules-{worker_id}") as running:
        yield running


@pytest.fixture
def api(lab: Lab) -> Iterator[Api]:
    client = lab.api()
    yield client
    client.close()


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linked_under(tmp_path_factory.mktemp("ansible"))


@pytest.fixture
def task(lab: Lab, place: Path) -> Task:
    """Run one module with Ansible on localhost, of this collection unless its name is qualified; return its result."""

    def run(module: str = "kubevirt_vm", *flags: str, **options: Any) -> Result:
        where = {"namespace": "default"} if module in NAMESPACED else {}
        return run_module(lab.kubeconfig, place, module, *flags, **{**where, **options})

    return run

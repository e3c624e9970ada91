# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab with the control plane on it (deployed.py): one for all test modules that only use it, and one for each that
breaks it or wants it otherwise. What a module leaves of machines is removed at its end.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed

LONGEST = (
    *("test_partition", "test_readme", "test_faults", "test_lifecycle", "test_migration", "test_chaos"),
    *("test_workload_update", "test_broken_node", "test_modules"),
)
"""Of the files: they come first, so that no worker is left with one of them at the end."""
MACHINES = "virtualmachineinstancereplicasets,virtualmachines,virtualmachineinstances"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda one: LONGEST.index(one.path.stem) if one.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(scope="session")
def shared_cluster(worker_id: str) -> Iterator[Cluster]:
    """Of one worker: files are given to two (noxfile.py), and half of what they do is waiting."""
    with deployed(f"e2e-{worker_id}") as made:
        yield made


@pytest.fixture(scope="module")
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster without machines; a module that breaks it overrides this by one of its own."""
    yield shared_cluster
    shared_cluster.kubectl("delete", MACHINES, "--all", "--all-namespaces")

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

MACHINES = "virtualmachineinstancereplicasets,virtualmachines,virtualmachineinstances"


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with deployed("e2e") as made:
        yield made


@pytest.fixture(scope="module")
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster without machines; a module that breaks it overrides this by one of its own."""
    yield shared_cluster
    shared_cluster.kubectl("delete", MACHINES, "--all", "--all-namespaces")

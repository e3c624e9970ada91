# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs with the control plane (deployed.py), each shared by as many test modules as possible: creating one costs
about as much as most modules need for their tests. The machines of a module are deleted at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import PurePath

import pytest
from xdist.scheduler import LoadFileScheduling

from lab.cluster.distributions import DISTRIBUTIONS
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed

TOGETHER = (
    (
        "test_migration",
        "test_page_migration",
        "test_live_changes",
        "test_partition",
        "test_chaos",
        "test_workload_update",
    ),
    ("test_broken_node", "test_kubelet_root"),
)
"""Files that share a lab of their own, in this order, on one worker."""
LONGEST = (
    *("test_migration", "test_readme", "test_faults", "test_lifecycle", "test_broken_node"),
    "test_modules",
)
"""The longest files: they come first, so that none of them runs alone at the end."""
MACHINES = "virtualmachineinstancereplicasets,virtualmachines,virtualmachineinstances,virtualmachineinstancemigrations"


def _together(file: str) -> tuple[str, ...]:
    return next((files for files in TOGETHER if file in files), (file,))


def _place(item: pytest.Item) -> tuple[int, int]:
    """Return the sort key of a test: its file, or the first of the files that share a lab."""
    file, together = item.path.stem, _together(item.path.stem)
    return LONGEST.index(together[0]) if together[0] in LONGEST else len(LONGEST), together.index(file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


class ByLab(LoadFileScheduling):
    """Schedule a file on one worker, and with it those that share its lab.

    xdist loses its own group marks with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _together(PurePath(nodeid.partition("::")[0]).stem)[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByLab:
    return ByLab(config, log)


@pytest.fixture(scope="session")
def shared_cluster(worker_id: str) -> Iterator[Cluster]:
    """One per worker: files run on two workers (noxfile.py), and half of their time is waiting."""
    with deployed(f"e2e-{worker_id}") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster without machines; a module that breaks it overrides this fixture with its own."""
    yield shared_cluster
    shared_cluster.kubectl("delete", MACHINES, "--all", "--all-namespaces")


@pytest.fixture(scope="session")
def shared_pair() -> Iterator[tuple[Cluster, ExitStack]]:
    """Two nodes, deleted after use: an idle lab costs the others a third of a CPU."""
    with ExitStack() as stack:
        yield stack.enter_context(deployed("pair", 2, control_plane_workload_update_methods=["LiveMigrate"])), stack


@pytest.fixture(scope="module")
def nodes(shared_pair: tuple[Cluster, ExitStack], request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two nodes without machines, for migrations."""
    cluster, stack = shared_pair
    yield cluster
    if request.path.stem == _together(request.path.stem)[-1]:
        stack.close()
    else:
        cluster.kubectl("delete", MACHINES, "--all", "--all-namespaces")


@pytest.fixture(scope="session")
def kubelets_elsewhere() -> Iterator[Cluster]:
    """Two nodes whose kubelets have another root directory."""
    root = DISTRIBUTIONS["k0s"].kubelet_root
    with deployed("broken-node", 2, lab_options={"like": "k0s"}, control_plane_kubelet_root=root) as cluster:
        yield cluster

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab for each test module, with the control plane on it; see deployed.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed


@pytest.fixture(scope="module")
def nodes() -> int:
    """How many nodes the module's lab has; a module overrides it."""
    return 1


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, nodes: int) -> Iterator[Cluster]:
    """A cluster of the module's own."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")[:12].strip("-")
    with deployed(name, nodes) as made:
        yield made

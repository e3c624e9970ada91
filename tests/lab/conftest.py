# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs for tests: each with a name of its own, each removed whatever comes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lab import Lab


@pytest.fixture(scope="module")
def two_nodes(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A running lab of two nodes for the tests of one module."""
    name = request.module.__name__.rpartition("test_lab_")[2].replace("_", "-")[:12]
    with Lab(f"t-{name}-{os.getpid()}").running(nodes=2, node_grace_seconds=8) as lab:
        yield lab


@pytest.fixture
def no_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab that is not up yet."""
    lab = Lab(f"t-own-{os.getpid()}")
    try:
        yield lab
    finally:
        lab.down()

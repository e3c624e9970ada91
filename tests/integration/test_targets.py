# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`ansible-test integration` as a certification runs it: without a cluster, and with one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import Lab
from tests import ansible_test
from tests.integration.served import serving

ROOT = Path(__file__).resolve().parents[2]
TARGETS = sorted(path.name for path in (ROOT / "tests/integration/targets").iterdir())


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    return ansible_test.copy_checkout(tmp_path)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with serving("targets") as served:
        yield served


def test_without_a_cluster_targets_are_skipped_and_nothing_fails(collection: Path) -> None:
    done = ansible_test.run(collection, "integration")

    assert done.returncode == 0
    assert 'Excluding target tests marked "unsupported"' in done.stdout
    assert all(target in done.stdout for target in TARGETS)


@pytest.mark.component
@pytest.mark.nightly
def test_with_a_cluster_from_a_file_every_target_passes(collection: Path, lab: Lab) -> None:
    config = collection / "tests/integration/integration_config.yml"
    config.write_text(yaml.safe_dump({"kubevirt_kubeconfig": str(lab.kubeconfig)}))

    done = ansible_test.run(collection, "integration", "--allow-unsupported")

    assert done.returncode == 0
    assert all(f"Running {target} integration test role" in done.stdout for target in TARGETS)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Malformed VMs: the error names the field and the remedy, within a second, and nothing is created."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

CORPUS = yaml.safe_load((Path(__file__).parent / "manifests/malformed.yaml").read_text())


def merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in CORPUS])
def test_it_is_refused_by_name(cluster: Cluster, row: dict[str, Any]) -> None:
    malformed = merged(a_vm("malformed", runStrategy="Halted"), row["patch"])
    started = time.monotonic()
    done = cluster.try_kubectl("create", "--validate=false", "-f", "-", given=json.dumps(malformed))
    took = time.monotonic() - started

    assert done.returncode != 0, "it was accepted"
    for words in row["says"]:
        assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert took < 1.0
    assert cluster.list("vm") == []

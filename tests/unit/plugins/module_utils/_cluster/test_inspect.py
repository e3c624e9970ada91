# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is looked for in a cluster before its control plane may go."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.inspect import _MACHINES

ROLE = Path(__file__).resolve().parents[5] / "roles" / "control_plane"


def test_no_kind_that_users_make_is_left_behind_unnoticed() -> None:
    kinds = yaml.safe_load((ROLE / "files" / "kinds.yaml").read_text())

    assert {one.plural for one in _MACHINES} == {one["plural"] for one in kinds if one["is_users"]}

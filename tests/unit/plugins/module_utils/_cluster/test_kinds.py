# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pruning and removal know every kind that the role creates."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.kinds import MADE_KINDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.readiness import RULES

ROLE = Path(__file__).resolve().parents[5] / "roles" / "control_plane"


def kinds_of_the_role() -> set[tuple[str, str]]:
    passing = set(ROLE.glob("templates/smoke-test-*.j2"))
    files = set(ROLE.glob("templates/*.j2")) - passing
    pairs = (re.findall(r"^apiVersion: (\S+)\nkind: (\S+)$", path.read_text(), re.MULTILINE) for path in files)
    definitions = (json.loads(path.read_text()) for path in ROLE.glob("files/crds/*.json"))
    return {
        *(pair for result in pairs for pair in result),
        *((definition["apiVersion"], definition["kind"]) for definition in definitions),
    }


def test_all_kinds_that_the_role_creates_are_listed() -> None:
    assert kinds_of_the_role() == {(item.api_version, item.kind) for item in MADE_KINDS}


def test_all_kinds_that_the_role_waits_for_are_listed() -> None:
    assert set(RULES) <= {item.kind for item in MADE_KINDS}

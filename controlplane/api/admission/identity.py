# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a VirtualMachine's generated identity when a later write omits it. Works on plain values.

These defaults are chosen once, at creation, and cannot be derived again. `kubectl replace` with the original manifest
must not give the guest another machine type, UUID or serial number.
"""

from __future__ import annotations

from controlplane.api.admission.paths import value_at, with_value
from controlplane.api.admission.rules import Json

KEPT = (
    ("architecture",),
    ("domain", "machine", "type"),
    ("domain", "firmware", "uuid"),
    ("domain", "firmware", "serial"),
)
"""Paths in the template's spec. A user changes such a field by setting it, not by omitting it."""


def keep_identity(vm: Json, old: Json) -> Json:
    """Copy the identity fields that `vm` omits from `old`. Returns the same object when nothing changes.

    `vm` fits its CRD's schema. `old` may have any shape, because another version may have admitted it.
    """
    kept = vm
    for path in KEPT:
        full_path = ("spec", "template", "spec", *path)
        before = value_at(old, *full_path)
        if isinstance(before, str) and before and value_at(kept, *full_path) in (None, ""):
            kept = with_value(kept, full_path, before)
    return kept

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math

from controlplane.virt_controller.certificates.observed_since import ObservedSince


def test_what_never_changed_before_our_eyes_has_stood_for_ever() -> None:
    standing = ObservedSince()

    assert standing.seconds("bundles", b"a", 100.0) == math.inf
    assert standing.seconds("bundles", b"a", 200.0) == math.inf


def test_a_change_begins_anew_and_each_name_has_its_own_time() -> None:
    standing = ObservedSince()
    standing.seconds("bundles", b"a", 100.0)
    standing.seconds("serving", b"a", 100.0)

    assert standing.seconds("bundles", b"b", 200.0) == 0.0
    assert standing.seconds("bundles", b"b", 230.0) == 30.0
    assert standing.seconds("bundles", b"a", 240.0) == 0.0
    assert standing.seconds("serving", b"a", 240.0) == math.inf

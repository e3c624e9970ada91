# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math

from controlplane.virt_controller.certificates.observed_since import ObservedSince


def test_a_value_without_an_observed_change_counts_as_unchanged_forever() -> None:
    observed_since = ObservedSince()

    assert observed_since.seconds("bundles", b"a", 100.0) == math.inf
    assert observed_since.seconds("bundles", b"a", 200.0) == math.inf


def test_a_change_restarts_the_time_and_each_name_has_its_own() -> None:
    observed_since = ObservedSince()
    observed_since.seconds("bundles", b"a", 100.0)
    observed_since.seconds("serving", b"a", 100.0)

    assert observed_since.seconds("bundles", b"b", 200.0) == 0.0
    assert observed_since.seconds("bundles", b"b", 230.0) == 30.0
    assert observed_since.seconds("bundles", b"a", 240.0) == 0.0
    assert observed_since.seconds("serving", b"a", 240.0) == math.inf

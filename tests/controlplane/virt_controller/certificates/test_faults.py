# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a certificate is due for renewal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.api.certificate_lifetimes import Lifetime
from controlplane.tls.certificates import make_ca
from controlplane.virt_controller.certificates.faults import due_at

NOW, YEAR = 1_767_225_600.0, timedelta(days=365)


@pytest.mark.parametrize(
    ("lifetime", "renew_at", "due_after"),
    [
        (YEAR * 3, 2 / 3, YEAR * 2 / 3),
        (YEAR / 2, 2 / 3, YEAR / 3),
        (YEAR * 3, 0.5, YEAR / 2),
        (YEAR / 2, 0.9, YEAR * 0.45),
    ],
)
def test_a_certificate_is_due_by_its_lifetime_or_the_usual_one(
    lifetime: timedelta, renew_at: float, due_after: timedelta
) -> None:
    """It begins earlier than it was issued, by the difference that clocks may have: that is no part of its lifetime."""
    due = due_at(make_ca("ours", NOW, lifetime).certificate, Lifetime(YEAR, renew_at))
    slack = 0.0 if lifetime > YEAR else 300.0
    assert due == pytest.approx(NOW + due_after.total_seconds(), abs=1 + slack)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.api.certificate_lifetimes import DEFAULTS, PAIR, RENEW_AT, Lifetime, lifetimes
from controlplane.api.objects.kubevirt import CertConfig, KubeVirtSelfSignConfiguration

HOURS = timedelta(hours=1)


def test_without_a_strategy_the_lifetimes_are_the_defaults() -> None:
    assert lifetimes(KubeVirtSelfSignConfiguration()) == DEFAULTS


@pytest.mark.parametrize(
    ("config", "lifetime"),
    [
        (CertConfig(duration="48h", renew_before="12h"), Lifetime(48 * HOURS, 0.75)),
        (CertConfig(duration="48h"), Lifetime(48 * HOURS, RENEW_AT)),
        (CertConfig(renew_before="540h"), Lifetime(PAIR.duration, 0.75)),
        (CertConfig(duration="a day", renew_before="soon"), PAIR),
        (CertConfig(duration="48h", renew_before="48h"), Lifetime(48 * HOURS, RENEW_AT)),
        (CertConfig(duration="-48h"), PAIR),
    ],
    ids=lambda value: f"{value.duration} {value.renew_before}" if isinstance(value, CertConfig) else "",
)
def test_a_lifetime_is_duration_and_renewal_each_with_its_default(config: CertConfig, lifetime: Lifetime) -> None:
    assert lifetimes(KubeVirtSelfSignConfiguration(server=config)).pair == lifetime

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long certificates are valid, and when they are replaced: from certificateRotateStrategy. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from controlplane.api import go_duration
from controlplane.api.objects.kubevirt import CertConfig, KubeVirtSelfSignConfiguration

RENEW_AT = 2 / 3
"""Part of a lifetime after which a certificate is replaced."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The lifetime of new certificates, and the part of it after which they are replaced."""

    duration: timedelta
    renew_at: float = RENEW_AT
    """From 0 to 1."""


AUTHORITY = Lifetime(timedelta(days=365))
PAIR = Lifetime(timedelta(days=90))


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Those of the CA, and of the pairs that it issues."""

    authority: Lifetime = AUTHORITY
    pair: Lifetime = PAIR


DEFAULTS = Lifetimes()


def lifetimes(config: KubeVirtSelfSignConfiguration) -> Lifetimes:
    """Return the lifetimes that a KubeVirt object asks for. Texts that admission would refuse count as not set."""
    return Lifetimes(_lifetime(config.ca, AUTHORITY), _lifetime(config.server, PAIR))


def _lifetime(config: CertConfig, default: Lifetime) -> Lifetime:
    duration = _seconds(config.duration) or default.duration.total_seconds()
    before = _seconds(config.renew_before)
    renew_at = 1 - before / duration if 0 < before < duration else default.renew_at
    return Lifetime(timedelta(seconds=duration), renew_at)


def _seconds(text: str) -> float:
    return max(0.0, go_duration.seconds(text) or 0.0)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a pair or an authority by itself, and when it falls due. Pure.

Of a certificate that has not begun, either its maker's clock was ahead or ours is behind, and nothing here tells which.
So it is made anew, beside what it takes the place of: that stays trusted for its life, and the new one begins by our
clock and ends no sooner than the old one does. It counts by either clock, and is renewed by its age as any other is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from controlplane.tls.certificates import (
    RENEW_AT,
    SKEW,
    KeyPair,
    Subject,
    is_for_subject,
    is_issued_by,
    is_key_pair,
    split_bundle,
    validity,
)

# How long a bundle has been with everybody before a pair is used that needs it, and a pair been used before what the
# last one needed is taken away: API servers, virt-api and virt-handlers learn by watch, in seconds.
SETTLE_SECONDS = 60.0

_OURS = {ExtensionOID.BASIC_CONSTRAINTS, ExtensionOID.KEY_USAGE, ExtensionOID.SUBJECT_KEY_IDENTIFIER}


def authority_name(namespace: str) -> str:
    """Return the common name of the authority that we make."""
    return f"{namespace}-ca"


def is_ours(certificate: bytes, namespace: str) -> bool:
    """Tell whether an authority's certificate is as we make it, and so not one that somebody put there."""
    parsed = x509.load_pem_x509_certificate(certificate)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority_name(namespace))])
    if not parsed.subject == parsed.issuer == name or {extension.oid for extension in parsed.extensions} != _OURS:
        return False
    return parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0


def fault(pair: KeyPair, subject: Subject, trusted: Iterable[bytes], now: float) -> str:
    """Say why the pair is of no use to anybody, "" when it is."""
    if not is_usable(pair):
        return "there is no usable pair"
    if validity(pair.certificate).is_over(now):
        return "the certificate has ended"
    if not is_for_subject(pair.certificate, subject):
        return "the certificate is for other names or another role"
    if not any(is_issued_by(pair.certificate, authority) for authority in trusted):
        return "the certificate is by an authority that nobody trusts"
    return ""


def is_usable(pair: KeyPair) -> bool:
    return bool(split_bundle(pair.certificate)) and is_key_pair(pair)


def is_early(certificate: bytes, now: float) -> bool:
    """Tell whether a certificate has not begun, by more than clocks differ."""
    return validity(certificate).begins > now + SKEW.total_seconds()


def due_at(certificate: bytes, usual: timedelta) -> float:
    """Return when it is to be renewed: by the share of its life or, if it was made to last longer, of the usual one."""
    known = validity(certificate)
    return min(known.renew_at(), known.begins + SKEW.total_seconds() + RENEW_AT * usual.total_seconds())


def settles_in(pair: KeyPair, seen_for: float, now: float) -> float:
    """Return in how many seconds something has settled, 0 when it has: by our own eyes, and by its age.

    A leader that has just begun has seen nothing change; the age says what the one before it has just made.
    """
    age = now - validity(pair.certificate).begins - SKEW.total_seconds()
    return max(0.0, SETTLE_SECONDS - seen_for, SETTLE_SECONDS - age)

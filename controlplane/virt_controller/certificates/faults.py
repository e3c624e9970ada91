# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a single pair or CA, and when it is due for renewal. Pure.

If a certificate is not valid yet, either the clock of its issuer was ahead or this process's clock is behind; this
process cannot tell which. So it replaces the certificate: the old CA stays trusted until it ends, and the new
certificate begins by this process's clock and does not end before the old one. It is valid by both clocks, and its
renewal is due by its age as usual.
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from controlplane.api.certificate_lifetimes import Lifetime
from controlplane.tls.certificates import (
    SKEW,
    KeyPair,
    Subject,
    is_for_subject,
    is_issued_by,
    is_key_pair,
    split_bundle,
    validity,
)

# How long every verifier has a new bundle before a pair needs it, and how long a new pair is in use before the former
# CA leaves the bundle. API servers, virt-api and virt-handlers see a change by their watches, within seconds.
SETTLE_SECONDS = 60.0

_OURS = {ExtensionOID.BASIC_CONSTRAINTS, ExtensionOID.KEY_USAGE, ExtensionOID.SUBJECT_KEY_IDENTIFIER}


def authority_name(namespace: str) -> str:
    """Return the common name of a CA that we create."""
    return f"{namespace}-ca"


def is_ours(certificate: bytes, namespace: str) -> bool:
    """Tell whether we created this CA certificate. Any difference means that another client wrote it."""
    parsed = x509.load_pem_x509_certificate(certificate)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority_name(namespace))])
    if not parsed.subject == parsed.issuer == name or {extension.oid for extension in parsed.extensions} != _OURS:
        return False
    return parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0


def fault(pair: KeyPair, subject: Subject, trusted: Iterable[bytes], now: float) -> str:
    """Return why the pair cannot be used; "" if it can."""
    if not is_usable(pair):
        return "there is no usable pair"
    if validity(pair.certificate).is_over(now):
        return "the certificate has expired"
    if not is_for_subject(pair.certificate, subject):
        return "the certificate is for other names or another role"
    if not any(is_issued_by(pair.certificate, authority) for authority in trusted):
        return "an untrusted CA issued the certificate"
    return ""


def is_usable(pair: KeyPair) -> bool:
    return bool(split_bundle(pair.certificate)) and is_key_pair(pair)


def is_early(certificate: bytes, now: float) -> bool:
    """Tell whether a certificate is not valid yet, by more than the usual difference of clocks."""
    return validity(certificate).begins > now + SKEW.total_seconds()


def due_at(certificate: bytes, usual: Lifetime) -> float:
    """Return when a certificate is due: after `renew_at` of its lifetime, or of the usual one if that is shorter."""
    period = validity(certificate)
    usual_seconds = SKEW.total_seconds() + usual.renew_at * usual.duration.total_seconds()
    return period.begins + min(usual.renew_at * (period.ends - period.begins), usual_seconds)


def settles_in(pair: KeyPair, seen_for: float, now: float) -> float:
    """Return the seconds until a change has settled, 0 if it has: by when it was observed and by the pair's age.

    A new leader has observed no change yet; the age shows what the former leader has just written.
    """
    age = now - validity(pair.certificate).begins - SKEW.total_seconds()
    return max(0.0, SETTLE_SECONDS - seen_for, SETTLE_SECONDS - age)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serving key pairs for tests, and the DNS names in a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from cryptography import x509

from controlplane.tls.certificates import KeyPair, Subject, issue


def issue_server(authority: KeyPair, names: Sequence[str], now: float, lifetime: timedelta) -> KeyPair:
    """Issue a serving key pair for these DNS names. The first name is the common name."""
    return issue(authority, Subject(names[0], "server", tuple(names)), now, lifetime)


def dns_names(certificate: bytes) -> tuple[str, ...]:
    extensions = x509.load_pem_x509_certificate(certificate).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(names.get_values_for_type(x509.DNSName))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes quantities as exact numbers: "64M", "1.5Gi", "100m", 0.5, "1e3"."""

from __future__ import annotations

import re
from fractions import Fraction

from controlplane.api.objects.meta import Quantity

_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_QUANTITY = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?", re.ASCII
)


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity."""


def parse(text: Quantity) -> Fraction:
    """Parse a quantity exactly. QuantityError."""
    if isinstance(text, bool):
        raise QuantityError("a boolean is not a quantity")
    match = _QUANTITY.fullmatch(repr(text) if isinstance(text, float) else str(text))
    if match is None:
        raise QuantityError("not a quantity such as 64M, 1.5Gi, 2 or 100m")
    sign, digits, suffix, exponent = match.groups()
    factor = Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""]
    return Fraction(f"{sign}{digits}") * factor


def to_bytes(text: Quantity) -> int:
    """Return whole bytes, rounded up as Kubernetes does."""
    return -(-parse(text) // 1)


def to_milli(text: Quantity) -> int:
    """Return whole thousandths (of a CPU), rounded up as Kubernetes does."""
    return -(-parse(text) * 1000 // 1)


def to_whole(text: Quantity) -> int:
    """Return whole units, rounded up."""
    return to_bytes(text)


def from_milli(milli: int) -> str:
    """Render thousandths: 1500 is "1500m", 2000 is "2"."""
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def from_bytes(count: int) -> str:
    """Render bytes with the largest binary suffix that keeps them exact."""
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        size = int(_SUFFIXES[suffix])
        if count and count % size == 0:
            return f"{count // size}{suffix}"
    return str(count)

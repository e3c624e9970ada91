# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of single fields. Admission reports violations (admission/fields.py), the CRD enforces them.

Bounds are metadata of the structs' types. Decoding ignores them: a controller must be able to read objects that another
version admitted. Rules over several fields are in controlplane.api.admission.validate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

MAX_TEXT = 1024
"""Characters of a string that names no bound of its own."""
MAX_ITEMS = 1000
"""Entries of a list or map that names no bound of its own."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a value must be. An empty string counts as absent and always passes."""

    what: str = ""
    """Completes "must be ..."; made from the numbers below if empty."""
    pattern: str = ""
    """Regular expression for the whole string; understood alike by Python and Go."""
    choices: tuple[str, ...] = ()
    """The words that are allowed."""
    unbuilt: tuple[str, ...] = ()
    """Values that KubeVirt has and this version does not implement."""
    minimum: int | None = None
    maximum: int | None = None
    max_length: int | None = None
    max_items: int | None = None
    quantity: bool = False
    int_or_percent: bool = False
    """A number above zero, or a percentage, e.g. 25%."""
    required: bool = False
    """An empty string is refused, too."""


def bounded(
    what: str = "",
    *,
    pattern: str = "",
    minimum: int | None = None,
    maximum: int | None = None,
    max_length: int | None = None,
    max_items: int | None = None,
    quantity: bool = False,
    int_or_percent: bool = False,
    required: bool = False,
) -> msgspec.Meta:
    """Return the type annotation with these bounds."""
    return _meta(
        Bounds(
            what=what,
            pattern=pattern,
            minimum=minimum,
            maximum=maximum,
            max_length=max_length,
            max_items=max_items,
            quantity=quantity,
            int_or_percent=int_or_percent,
            required=required,
        )
    )


def one_of(*choices: str, unbuilt: tuple[str, ...] = (), required: bool = False) -> msgspec.Meta:
    """Return the type annotation of a string with these choices."""
    return _meta(Bounds(choices=choices, unbuilt=unbuilt, required=required))


def _meta(bounds: Bounds) -> msgspec.Meta:
    return msgspec.Meta(extra={"bounds": bounds})


LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""A label's value, and its key behind the prefix."""
SUBDOMAIN = LABEL + r"(\." + LABEL + ")*"

DnsLabel = Annotated[
    str,
    bounded("a DNS label: lower-case letters, digits and '-', at most 63 characters", pattern=LABEL, max_length=63),
]
DnsSubdomain = Annotated[
    str,
    bounded("a DNS subdomain: lower-case letters, digits, '-' and '.'", pattern=SUBDOMAIN, max_length=253),
]
LabelKey = Annotated[
    str,
    bounded(
        "a label key, e.g. example.com/drain",
        pattern=f"({SUBDOMAIN}/)?{LABEL_PART}",
        max_length=317,
    ),
]
ClaimName = Annotated[
    str,
    bounded(
        "the name of a claim: letters, digits, '-', '.' and '_'",
        pattern="[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
        max_length=253,
        required=True,
    ),
]
"""More than a claim can have: Kubernetes lets a Pod name any, and it waits. See validate/claim_names.py."""
VolumeName = Annotated[
    str,
    bounded(
        "a DNS label of at most 59 characters: lower-case letters, digits and '-'",
        pattern=LABEL,
        max_length=59,
        required=True,
    ),
]
"""Four characters short of a DNS label: the Pod's volume gets a prefix."""
InterfaceName = Annotated[
    str,
    bounded("letters, digits, '-' and '_', at most 63 of them", pattern="[A-Za-z0-9_-]+", max_length=63, required=True),
]


def _image_name(*, required: bool) -> msgspec.Meta:
    return bounded(
        "the name of a container image, e.g. quay.io/containerdisks/fedora:43",
        pattern=(
            r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?/)?"
            r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
            r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[a-f0-9]{64})?"
        ),
        max_length=1024,
        required=required,
    )


ImageName = Annotated[str, _image_name(required=True)]
KernelImageName = Annotated[str, _image_name(required=False)]
"""The rules of kernelBoot require it."""
ImagePath = Annotated[
    str,
    bounded(
        "an absolute path of a file, of letters, digits and '_', '.', '+', '@', '-', without '.' or '..' parts",
        # A component may not be . or .. (Go has no look-ahead): it begins with at most two dots and another character,
        # or with three dots. Each text matches in one way only, so a long path causes no backtracking.
        pattern=r"(/(\.{0,2}[A-Za-z0-9_+@-][A-Za-z0-9_.+@-]*|\.{3}[A-Za-z0-9_.+@-]*))+",
        max_length=1024,
    ),
]
PullPolicy = Annotated[str, one_of("Always", "IfNotPresent", "Never")]
BootOrder = Annotated[int, bounded(minimum=1, maximum=1024)]
LabelMap = Annotated[dict[str, str], bounded(max_items=256)]

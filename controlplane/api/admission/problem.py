# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A problem of an object: its path, the message and the remedy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

Reason = Literal[
    "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported", "FieldValueForbidden", "FieldValueDuplicate"
]

EXCERPT = 64
"""Characters of a refused value that an error shows."""
MAX_PROBLEMS = 100
"""Problems reported for one object. The search stops there, so one bad object does not delay other reviews."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an object."""

    path: str
    """Where, as in kubectl: spec.template.spec.volumes[0].name. "" is the object itself."""
    message: str
    """What is wrong and what to do. Never contains user data, network data or a Secret."""
    reason: Reason = "FieldValueInvalid"
    joint: str = ": "
    """What a text has between path and message. " ": both are one sentence of upstream's, which clients look for."""

    def __str__(self) -> str:
        return f"{self.path}{self.joint}{self.message}" if self.path else self.message


def excerpt(value: Any) -> str:
    """Render a value for an error: JSON, escaped, cut to EXCERPT characters."""
    text = json.dumps(value[: EXCERPT + 1] if isinstance(value, str) else value, default=str)
    return text if len(text) <= EXCERPT else text[: EXCERPT - 3] + "..."


def below(path: str, name: str | int) -> str:
    """Append a field name or an index to a path."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def key(path: str, name: str) -> str:
    """Append the key of a map to a path, e.g. metadata.labels[app]."""
    return f"{path}[{json.dumps(name[:EXCERPT])[1:-1]}]"

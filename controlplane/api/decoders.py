# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reads a type, and how a type is built, made at their first use by one thread at a time. The rest is msgspec's.

msgspec notes on a type how it is read, at the first use of any kind, and other threads see the note before it is
complete: two that use a type for the first time at once end their process (SIGSEGV, msgspec 0.22). So whatever makes
such notes is here, but for decoders that a module makes when it is loaded: no thread is at work then.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T", bound=msgspec.Struct)
_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}
_making = threading.Lock()


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return what reads a type; once it is there, the type can be converted to as well."""
    if kind not in _DECODERS:
        with _making:
            _DECODERS[kind] = msgspec.json.Decoder(kind)
    return _DECODERS[kind]


def inspect_type(kind: type[msgspec.Struct]) -> inspect.Type:
    """Return how a type is built."""
    with _making:
        return inspect.type_info(kind)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoders of types, created at first use by one thread at a time.

msgspec stores decoding data on a type at its first use, and other threads see it before it is complete: two threads
that use a type for the first time at once crash the process (SIGSEGV, msgspec 0.22). So decoders are created here under
a lock, or while a module is imported, when no other thread runs.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T", bound=msgspec.Struct)
_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}
_lock = threading.Lock()


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type. After this call msgspec.convert is safe for the type, too."""
    if kind not in _DECODERS:
        with _lock:
            _DECODERS[kind] = msgspec.json.Decoder(kind)
    return _DECODERS[kind]


def inspect_type(kind: type[msgspec.Struct]) -> inspect.Type:
    """Return msgspec's description of a type."""
    with _lock:
        return inspect.type_info(kind)

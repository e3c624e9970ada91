# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's audit log, as far as a timeline needs it: its newest part, of the objects of VMs.

Anybody who reaches the API server writes into this log, so nothing in it is taken for granted: what cannot be read is
passed over and counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

BLOCK_BYTES = 1 << 20
_OF_INTEREST = (b"kubevirt", b"pods")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One answered request. Times are seconds since the epoch."""

    user: str
    verb: str
    resource: str
    """With its subresource, such as pods/binding; empty for what is no object."""
    namespace: str
    name: str
    code: int
    received: float
    answered: float


@dataclass(frozen=True)
class Audit:
    """Entries, oldest first, and how many more there were that could not be read."""

    entries: tuple[Entry, ...] = ()
    skipped: int = 0


def seconds(stamp: str) -> float:
    """Return an RFC 3339 time as seconds since the epoch; ValueError when it is none."""
    cut = re.sub(r"(\.\d{6})\d+", r"\1", stamp.replace("Z", "+00:00"))
    return datetime.fromisoformat(cut).timestamp()


def parse_entry(line: bytes) -> Entry | None:
    """None for what is broken, and for a request without a user: one that nobody has authenticated."""
    try:
        event = json.loads(line)
        where = event.get("objectRef", {})
        parts = [where.get("resource", ""), where.get("subresource", "")]
        return Entry(
            user=event["user"]["username"],
            verb=event["verb"],
            resource="/".join(part for part in parts if part),
            namespace=where.get("namespace", ""),
            name=where.get("name", ""),
            code=int(event.get("responseStatus", {}).get("code", 0)),
            received=seconds(event["requestReceivedTimestamp"]),
            answered=seconds(event["stageTimestamp"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def read_audit(log: Path, *, since: float) -> Audit:
    """Read the entries that were answered since then, from the log's end backwards, through the files before it."""
    entries: list[Entry] = []
    skipped = 0
    for line in _newest_first(log):
        if not any(word in line for word in _OF_INTEREST):
            continue
        entry = parse_entry(line)
        if entry is None:
            skipped += 1
        elif entry.answered < since:
            break
        else:
            entries.append(entry)
    return Audit(tuple(reversed(entries)), skipped)


def _newest_first(log: Path) -> Iterator[bytes]:
    """The API server renames a full file to NAME-TIME and removes the oldest of these."""
    for path in (log, *sorted(log.parent.glob(f"{log.stem}-*{log.suffix}"), reverse=True)):
        with contextlib.suppress(FileNotFoundError):
            yield from lines_backwards(path)


def lines_backwards(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield a file's lines, the last one first, without reading more of it than is asked for."""
    with path.open("rb") as file:
        position, rest = file.seek(0, os.SEEK_END), b""
        while position > 0:
            start = max(0, position - block_bytes)
            file.seek(start)
            rest, *lines = (file.read(position - start) + rest).split(b"\n")
            position = start
            yield from (line for line in reversed(lines) if line)
        if rest:
            yield rest

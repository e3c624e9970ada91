# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the API server's audit log that a timeline needs: recent entries about the objects of VMs.

Every client of the API server can cause entries, so entries are untrusted: unreadable ones are skipped and counted.
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
    """One completed request. Times are seconds since the epoch."""

    user: str
    verb: str
    resource: str
    """With its subresource, such as pods/binding. Empty for requests without an object."""
    namespace: str
    name: str
    code: int
    received: float
    answered: float


@dataclass(frozen=True)
class Audit:
    """Entries, oldest first, and the number of unreadable ones."""

    entries: tuple[Entry, ...] = ()
    skipped: int = 0


def seconds(stamp: str) -> float:
    """Return an RFC 3339 time as seconds since the epoch. Raises ValueError for other texts."""
    cut = re.sub(r"(\.\d{6})\d+", r"\1", stamp.replace("Z", "+00:00"))
    return datetime.fromisoformat(cut).timestamp()


def parse_entry(line: bytes) -> Entry | None:
    """Parse a line. None if it is broken, or if the request was not authenticated and has no user."""
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
    """Read the entries of requests completed since `since`: backwards through the log and its older files."""
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
    """Yield lines, newest first. The API server renames a full file to NAME-TIME and removes the oldest."""
    for path in (log, *sorted(log.parent.glob(f"{log.stem}-*{log.suffix}"), reverse=True)):
        with contextlib.suppress(FileNotFoundError):
            yield from lines_backwards(path)


def lines_backwards(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield a file's lines, the last first. Reads the file block by block, as needed."""
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

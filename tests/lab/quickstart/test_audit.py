# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading an audit log, whose entries are untrusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.quickstart.audit import Entry, lines_backwards, parse_entry, read_audit, seconds


def event(second: int, **changes: Any) -> dict[str, Any]:
    return {
        "user": {"username": "admin"},
        "verb": "create",
        "objectRef": {"resource": "pods", "subresource": "binding", "namespace": "shop", "name": f"web-{second}"},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02}.000000Z",
        "stageTimestamp": f"2026-01-01T00:00:{second:02}.250000Z",
        **changes,
    }


def write(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


UNAUTHENTICATED = event(3, user={}, responseStatus={"code": 401})
"""The API server's entry for a wrong token."""

UNREADABLE: dict[str, dict[str, Any] | str] = {
    "a wrong token": UNAUTHENTICATED,
    "no user at all": {key: value for key, value in event(3).items() if key != "user"},
    "a user that is a word": event(3, user="pods"),
    "no verb": {key: value for key, value in event(3).items() if key != "verb"},
    "a time that is a word": event(3, stageTimestamp="pods"),
    "a time that is a number": event(3, stageTimestamp=3),
    "an object that is a word": event(3, objectRef="pods"),
    "a code that is a word": event(3, responseStatus={"code": "x"}),
    "a list": '["pods"]',
    "a word": "pods",
    "half a line": json.dumps(event(3))[:150],
    "other bytes": "pods \x00\x1b",
}


def test_an_entry_has_user_verb_object_and_times() -> None:
    assert parse_entry(json.dumps(event(2)).encode()) == Entry(
        user="admin",
        verb="create",
        resource="pods/binding",
        namespace="shop",
        name="web-2",
        code=201,
        received=seconds("2026-01-01T00:00:02Z"),
        answered=seconds("2026-01-01T00:00:02.250Z"),
    )


def test_a_request_without_an_object_is_an_entry() -> None:
    one = {key: value for key, value in event(2).items() if key not in ("objectRef", "responseStatus")}
    found = parse_entry(json.dumps(one).encode())
    assert found is not None
    assert (found.resource, found.name, found.code) == ("", "", 0)


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_line_is_skipped_and_counted(line: dict[str, Any] | str, tmp_path: Path) -> None:
    log = write(tmp_path / "audit.log", event(2), line, event(4))
    audit = read_audit(log, since=0)
    assert [entry.name for entry in audit.entries] == ["web-2", "web-4"]
    assert audit.skipped == 1


def test_bytes_that_are_no_text_are_skipped(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(b'{"pods": "\xff\xfe"}\n')
    assert read_audit(log, since=0).skipped == 1


def test_a_line_about_other_resources_is_not_parsed(tmp_path: Path) -> None:
    log = write(tmp_path / "audit.log", '{"objectRef": {"resource": "leases"}', event(4))
    assert read_audit(log, since=0).skipped == 0


def test_rotated_files_are_read(tmp_path: Path) -> None:
    write(tmp_path / "audit-2026-01-01T00-00-02.000.log", event(1), event(2))
    write(tmp_path / "audit-2026-01-01T00-00-04.000.log", event(3), event(4))
    log = write(tmp_path / "audit.log", event(5))
    found = [entry.name for entry in read_audit(log, since=0).entries]
    assert found == ["web-1", "web-2", "web-3", "web-4", "web-5"]


def test_reading_ends_at_the_first_old_entry(tmp_path: Path) -> None:
    write(tmp_path / "audit-2026-01-01T00-00-02.000.log", "broken pods")
    log = write(tmp_path / "audit.log", event(1), "broken pods", event(2), event(3))
    audit = read_audit(log, since=seconds("2026-01-01T00:00:02.2Z"))
    assert [entry.name for entry in audit.entries] == ["web-2", "web-3"]
    assert audit.skipped == 1, "only the line after the first old entry"


def test_a_missing_log_has_no_entries(tmp_path: Path) -> None:
    assert read_audit(tmp_path / "audit.log", since=0).entries == ()


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("text", ["", "a", "a\n", "a\nbc\n", "\n\nabc\n\nd\n", "a\nbroken end"])
def test_lines_are_read_backwards_with_any_block_size(block_bytes: int, text: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    lines = [line.decode() for line in lines_backwards(path, block_bytes=block_bytes)]
    assert lines == [line for line in reversed(text.split("\n")) if line]

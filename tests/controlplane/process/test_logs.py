# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.process import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A stream that logging writes to. Restores the root logger afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(capture=False)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_json_line_with_its_key_values(stream: io.StringIO) -> None:
    logs.configure("virt-test", "info", stream)

    logging.getLogger("some.where").info("created instance", extra={"key": Key("ns", "vm"), "attempt": 2})

    (line,) = lines(stream)
    assert line["component"] == "virt-test"
    assert line["level"] == "info"
    assert line["event"] == "created instance"
    assert line["key"] == "ns/vm"
    assert line["attempt"] == 2
    assert line["time"].endswith("Z")


@pytest.mark.parametrize(
    "hostile",
    ['a\n{"level":"error"}', "\x1b[2Jgone", "\u202egnp", "a\r\nb", "\x00", "\u2028", "\udc80"],
    ids=["newline", "ansi", "direction", "crlf", "nul", "line separator", "lone surrogate"],
)
def test_a_hostile_value_is_escaped_and_stays_in_its_line(stream: io.StringIO, hostile: str) -> None:
    logs.configure("virt-test", stream=stream)

    logging.getLogger().warning("refused %s", hostile, extra={"name_given": hostile})

    written = stream.getvalue()
    assert written.count("\n") == 1
    assert all(32 <= ord(character) < 127 for character in written[:-1])
    assert json.loads(written)["name_given"] == hostile


def test_an_exception_stays_in_the_line(stream: io.StringIO) -> None:
    logs.configure("virt-test", stream=stream)

    try:
        raise RuntimeError("broken\nin two")
    except RuntimeError:
        logging.getLogger().exception("bug")

    (line,) = lines(stream)
    assert "RuntimeError: broken\nin two" in line["exception"]


def test_a_long_value_is_cut_and_marked_as_cut(stream: io.StringIO) -> None:
    logs.configure("virt-test", stream=stream)

    logging.getLogger().info("read", extra={"text": "x" * 100_000})

    (line,) = lines(stream)
    assert len(line["text"]) < logs.MAX_VALUE_CHARACTERS + 100
    assert "characters cut" in line["text"]


def test_an_extra_cannot_replace_a_field_of_the_log(stream: io.StringIO) -> None:
    logs.configure("virt-test", stream=stream)

    logging.getLogger().info("read", extra={"component": "virt-other"})

    assert lines(stream)[0]["component"] == "virt-test"


def test_an_unknown_level_is_refused_with_the_remedy(stream: io.StringIO) -> None:
    with pytest.raises(ValueError, match="use DEBUG, INFO"):
        logs.configure("virt-test", "loud", stream)


def test_a_second_call_replaces_the_first(stream: io.StringIO) -> None:
    first = io.StringIO()
    logs.configure("virt-test", stream=first)
    logs.configure("virt-test", stream=stream)

    logging.getLogger().info("once")

    assert (len(lines(first)), len(lines(stream))) == (0, 1)

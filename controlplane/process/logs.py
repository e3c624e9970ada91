# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One JSON object per line on stderr, for every process of ours; nothing else about logging lives here.

Call `configure` once, in __main__. Everywhere else: logging.getLogger(__name__) and a constant event
text plus key-values, e.g. log.info("created instance", extra={"key": key, "because": why}).

Lines are ASCII: newlines, ANSI escapes and direction overrides in a value arrive escaped, so that
nothing a tenant names can forge or hide a line. Standard library only: the launcher imports this too.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

MAX_VALUE_CHARACTERS = 8192  # a traceback fits; a tenant's essay does not

# What logging itself puts on a record; all other attributes came from `extra`.
_OWN_ATTRIBUTES = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def configure(component: str, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send all logging of this process to stream (default: stderr) as JSON lines.

    level is a name such as "INFO" or "debug". A second call replaces the first.
    Raises ValueError for a level that does not exist.
    """
    number = _number(level)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(component))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    logging.captureWarnings(capture=True)


def set_level(level: str) -> None:
    """Log from this level on. Raises ValueError for a level that does not exist."""
    logging.getLogger().setLevel(_number(level))


def _number(level: str) -> int:
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"unknown log level {level!r}; use DEBUG, INFO, WARNING or ERROR")
    return number


class JsonLines(logging.Formatter):
    """Render a record as one line of JSON: time, level, component, logger, event, then the key-values."""

    def __init__(self, component: str) -> None:
        super().__init__()
        self._component = component

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _stamp(record.created),
            "level": record.levelname.lower(),
            "component": self._component,
            "logger": record.name,
            "event": _value(record.getMessage()),
        }
        for name, value in record.__dict__.items():
            if name not in _OWN_ATTRIBUTES and name not in line:
                line[name] = _value(value)
        if record.exc_info:
            line["exception"] = _value(self.formatException(record.exc_info))
        return json.dumps(line, separators=(",", ":"), ensure_ascii=True)


def _stamp(created: float) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))
    return f"{seconds}.{int(created * 1_000_000) % 1_000_000:06d}Z"


def _value(value: object) -> object:
    """Keep what JSON has; anything else becomes its text, cut to a bounded length."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields"):
        return [_value(item) for item in list(value)[:100]]
    text = str(value)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    half = MAX_VALUE_CHARACTERS // 2  # both ends: a traceback says what in its last line
    return f"{text[:half]}[{len(text) - 2 * half} characters cut]{text[-half:]}"

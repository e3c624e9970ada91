# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tests share: random examples are the same in each run, and a busy machine is not a failure."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.failed import SHOWN_LINES, note

settings.register_profile("virtops", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("virtops")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Note each test that failed, with the end of what was said of it; of several workers, their leader does."""
    if hasattr(config, "workerinput"):
        return
    for kind in ("failed", "error"):
        for report in terminalreporter.stats.get(kind, ()):
            note(report.nodeid, shown_lines(report.longreprtext))


def shown_lines(text: str) -> list[str]:
    """Return the end of a failure: pytest's own lines of the error, and where it was raised."""
    lines = text.splitlines()
    errors = [line for line in lines if line.startswith("E ")][:SHOWN_LINES]
    return [*errors, *lines[-1:]]

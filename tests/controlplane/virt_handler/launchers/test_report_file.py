# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The size limit of reports. File types: node/test_virt_node_client."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controlplane.api.launch_plan import REPORT_LIMIT_BYTES
from controlplane.virt_handler.launchers.ports import Refused
from controlplane.virt_handler.launchers.report_file import read_report


def test_a_report_is_read_up_to_the_limit(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_bytes(b"x" * REPORT_LIMIT_BYTES)
    assert len(read_report(os.open(report, os.O_RDONLY))) == REPORT_LIMIT_BYTES
    report.write_bytes(b"x" * (REPORT_LIMIT_BYTES + 1))
    with pytest.raises(Refused, match="more than"):
        read_report(os.open(report, os.O_RDONLY))

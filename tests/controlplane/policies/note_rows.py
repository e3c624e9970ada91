# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a captured virt-handler may write into the labels and annotations of its Node."""

from __future__ import annotations

from tests.controlplane.policies.handler_rows import MINE, Row, metadata

TOO_LONG = "have at most 8192 bytes together"


def _notes(count: int, value: str) -> dict[str, str]:
    return {f"kubevirt.io/{number}": value for number in range(count)}


NOTE_ROWS: dict[str, Row] = {
    "annotations that are just not too long": metadata(MINE, None, annotations=_notes(7, "x" * 1024)),
    "annotations that are long together": metadata(MINE, TOO_LONG, annotations=_notes(8, "x" * 1024)),
    "annotations in letters of four bytes": metadata(MINE, TOO_LONG, annotations=_notes(3, "\U0001f600" * 1000)),
    "labels and annotations that are long together": metadata(
        MINE, TOO_LONG, labels=_notes(60, "x" * 60), annotations=_notes(4, "x" * 1024)
    ),
}

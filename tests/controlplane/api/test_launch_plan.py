# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launch plan and the report of the launcher. The tenant can write the report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.launch_plan import (
    REPORT_LIMIT_BYTES,
    VERSION,
    ImageFile,
    LauncherReport,
    parse_report,
    render_report,
)

MOUNTS = {"root": "/img/volumes/root"}
FOUND = {"volume": "root", "path": "/img/volumes/root/disk/a", "format": "raw"}


def a_report(*disks: Any, **fields: Any) -> bytes:
    return json.dumps({"version": VERSION, "container_disks": list(disks), **fields}).encode()


def test_a_report_is_decoded_as_written() -> None:
    report = LauncherReport((ImageFile("root", "/img/volumes/root/disk/a", "raw"),), direct_io=False)
    assert parse_report(render_report(report).encode(), mounts=MOUNTS) == report


def test_a_report_says_which_claims_are_devices() -> None:
    report = LauncherReport(block_claims=("raw",))

    assert parse_report(render_report(report).encode(), mounts={}, claims={"raw", "data"}) == report


@pytest.mark.parametrize("listed", [["root"], ["other"], [7], [["raw"]], "raw", {"raw": 1}])
def test_a_volume_without_a_claim_is_no_device(listed: object) -> None:
    with pytest.raises(ValueError, match="names a device that is no volume of a claim"):
        parse_report(a_report(FOUND, block_claims=listed), mounts=MOUNTS, claims={"raw"})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"[" * 60_000, "nested too deeply", id="lists in lists"),
        pytest.param(b'{"a":' * 10_000, "nested too deeply", id="objects in objects"),
        pytest.param(
            a_report(FOUND)[:-1] + b', "more": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
            "nested too deeply",
            id="closed",
        ),
        pytest.param(a_report(FOUND, more="x" * REPORT_LIMIT_BYTES), "at most 65536 are read", id="long"),
        pytest.param(b"\xff", "utf-8", id="no text"),
        pytest.param(b"[]", "not of version 1", id="no object"),
        pytest.param(a_report(FOUND, version=2), "not of version 1", id="other version"),
        pytest.param(a_report(), "exactly the expected volumes", id="a volume is missing"),
        pytest.param(a_report(FOUND, FOUND), "exactly the expected volumes", id="a volume twice"),
        pytest.param(a_report({**FOUND, "volume": "x"}), "unexpected volume", id="another volume"),
        pytest.param(a_report({**FOUND, "format": "vmdk"}), "unknown format", id="another format"),
        pytest.param(a_report({**FOUND, "path": "/etc/shadow"}), "outside the image", id="elsewhere"),
        pytest.param(
            a_report({**FOUND, "path": "/img/volumes/root/../../etc/shadow"}), "outside the image", id="dot segments"
        ),
        pytest.param(a_report({**FOUND, "path": "/img/volumes/root-2/disk/a"}), "outside the image", id="another's"),
        pytest.param(a_report({**FOUND, "path": "/img/volumes/root//disk/a"}), "outside the image", id="no name"),
        pytest.param(a_report({**FOUND, "path": "/img/volumes/root/"}), "outside the image", id="no file"),
        pytest.param(a_report({**FOUND, "path": "/img/volumes/root/a\n"}), "outside the image", id="control character"),
        pytest.param(a_report("x"), "not an object", id="a word for a disk"),
    ],
)
def test_every_malformed_report_raises_the_same_error(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_report(data, mounts=MOUNTS)

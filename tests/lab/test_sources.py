# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the lab gets things from is the machine's business: apt's sources, pip's index, Go's proxy."""

from __future__ import annotations

import re

from lab.collection import ROOT
from lab.programs.modules import ENVIRONMENT

HOSTS = re.compile(
    r"deb\.debian\.org|debian\.org/debian|archive\.ubuntu\.com|proxy\.golang\.org|pypi\.org|ghcr\.io|quay\.io"
)


def test_no_mirror_is_named_in_code() -> None:
    sources = [path for path in (ROOT / "lab").rglob("*") if path.suffix in {".py", ".go", ".mod"}]
    assert sources
    assert [str(path) for path in sources if HOSTS.search(path.read_text())] == []


def test_go_is_left_the_proxy_that_the_machine_says() -> None:
    assert not {"GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB"} & set(ENVIRONMENT)

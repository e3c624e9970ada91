# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which versions of Go are accepted."""

from __future__ import annotations

import pytest

from lab.programs.toolchain import EXACT, FLOOR, parse_version, toolchain_variable


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go version go1.27 linux/arm64", (1, 27, 0)),
        ("go version devel go1.27-abcdef linux/amd64", None),
        ("gcc (Debian 12.2.0)", None),
    ],
)
def test_the_version_of_a_release_is_parsed(answer: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(answer) == version


def test_an_older_patch_release_downloads_the_required_one() -> None:
    assert toolchain_variable(FLOOR) == "go" + ".".join(map(str, EXACT))
    assert toolchain_variable(EXACT) == toolchain_variable((1, 27, 3)) == "local"

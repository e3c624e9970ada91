# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit on a process's descriptors."""

from __future__ import annotations

import resource

import pytest

from controlplane.process.descriptors import WANTED, connection_limit, raise_descriptor_limit


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((1024, resource.RLIM_INFINITY), (WANTED, resource.RLIM_INFINITY)),
        ((1024, 4096), (4096, 4096)),
        ((WANTED * 2, WANTED * 4), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
    ],
    ids=["as wanted", "as far as allowed", "never lowered", "never bounded"],
)
def test_the_soft_limit_is_raised(
    limits: tuple[int, int], expected: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _which, wanted: new_limits.append(wanted))
    raise_descriptor_limit()
    assert new_limits == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("soft", "expected"),
    [(65536, 512), (1024, 256), (2, 1), (resource.RLIM_INFINITY, 512)],
    ids=["plenty", "a quarter", "at least one", "never bounded"],
)
def test_connections_use_only_a_share_of_the_descriptors(
    soft: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, soft))
    assert connection_limit(512) == expected

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capability probe, without a libvirtd: it never fails its Pod. With one it is part of every test on a lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.domain import layout
from controlplane.virt_launcher import capabilities


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A container without libvirtd and without /dev/kvm."""
    monkeypatch.setattr(capabilities, "_LIBVIRTD", str(tmp_path / "libvirtd"))
    monkeypatch.setattr(capabilities, "_KVM", str(tmp_path / "kvm"))
    return tmp_path


def test_without_libvirtd_it_ends_well_and_leaves_nothing_wrong(nothing: Path) -> None:
    assert capabilities.main([str(nothing / "out")]) == 0
    assert [one.name for one in (nothing / "out").iterdir()] == ["emulation"]
    assert list((nothing / "out" / "emulation").iterdir()) == []


def test_libvirtd_gets_the_directories_of_a_launcher_below_another_root() -> None:
    environment = capabilities._environment(Path("/scratch"))
    assert environment["XDG_RUNTIME_DIR"] == "/scratch"
    assert environment["XDG_CACHE_HOME"] == "/scratch/cache"
    assert layout.CAPABILITY_CACHE[:2] == ("cache", "libvirt")

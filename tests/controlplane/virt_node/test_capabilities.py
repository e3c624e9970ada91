# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What QEMU can do, as the DaemonSet's init container left it."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.virt_node import capabilities
from controlplane.virt_node.capabilities import read_capabilities, read_host_cpu


def test_a_launcher_gets_what_fits_its_devices(tmp_path: Path) -> None:
    for kind in ("kvm", "emulation"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "q.xml").write_text(kind)
        (tmp_path / kind / "notes").write_text("not a cache")
    found = read_capabilities(tmp_path)
    assert found.files(with_kvm=True) == {"q.xml": b"kvm"}
    assert found.files(with_kvm=False) == {"q.xml": b"emulation"}


def test_without_a_cache_launchers_get_none(tmp_path: Path) -> None:
    found = read_capabilities(tmp_path / "absent")
    assert found.files(with_kvm=True) == {}


def test_what_is_too_large_for_a_cache_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_LIMIT_BYTES", 4)
    (tmp_path / "kvm").mkdir()
    (tmp_path / "kvm" / "fits.xml").write_text("four")
    (tmp_path / "kvm" / "huge.xml").write_text("fifth")
    assert [*read_capabilities(tmp_path).files(with_kvm=True)] == ["fits.xml"]


def test_what_the_processor_is_comes_from_launchers_that_can_use_it(tmp_path: Path) -> None:
    (tmp_path / "kvm").mkdir()
    (tmp_path / "kvm" / "cpu.json").write_text('{"model": "EPYC", "vendor": "AMD", "features": ["avx2"]}')
    found = read_host_cpu(tmp_path)
    assert found is not None
    assert (found.model, found.features) == ("EPYC", ("avx2",))
    assert read_capabilities(tmp_path).files(with_kvm=True) == {}


@pytest.mark.parametrize("said", [None, "", "{}", '{"model": 1}', "\xff"])
def test_a_processor_of_which_nothing_is_known_is_none(tmp_path: Path, said: str | None) -> None:
    (tmp_path / "kvm").mkdir()
    if said is not None:
        (tmp_path / "kvm" / "cpu.json").write_text(said)
    assert read_host_cpu(tmp_path) is None

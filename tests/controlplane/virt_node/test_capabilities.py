# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capabilities of QEMU that the DaemonSet's init container has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.links.node.messages import HostCpu
from controlplane.virt_node import capabilities
from controlplane.virt_node.capabilities import read_capabilities, read_host_cpu


def test_a_launcher_gets_the_capabilities_for_its_devices(tmp_path: Path) -> None:
    for kind in ("kvm", "emulation"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "q.xml").write_text(kind)
        (tmp_path / kind / "notes").write_text("not a cache")
    capabilities_read = read_capabilities(tmp_path)
    assert capabilities_read.files(with_kvm=True) == {"q.xml": b"kvm"}
    assert capabilities_read.files(with_kvm=False) == {"q.xml": b"emulation"}


def test_without_a_cache_launchers_get_no_files(tmp_path: Path) -> None:
    capabilities_read = read_capabilities(tmp_path / "absent")
    assert capabilities_read.files(with_kvm=True) == {}


def test_a_too_large_cache_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_LIMIT_BYTES", 4)
    (tmp_path / "kvm").mkdir()
    (tmp_path / "kvm" / "fits.xml").write_text("four")
    (tmp_path / "kvm" / "huge.xml").write_text("fifth")
    assert [*read_capabilities(tmp_path).files(with_kvm=True)] == ["fits.xml"]


def test_the_cpu_of_guests_with_kvm_is_the_nodes_own(tmp_path: Path) -> None:
    for kind, text in (
        ("kvm", '{"model": "EPYC", "vendor": "AMD", "features": ["avx2"]}'),
        ("emulation", '{"model": "", "models": ["qemu64"]}'),
    ):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "cpu.json").write_text(text)
    cpu = read_host_cpu(tmp_path, with_kvm=True)
    assert cpu is not None
    assert (cpu.model, cpu.features) == ("EPYC", ("avx2",))
    assert read_host_cpu(tmp_path, with_kvm=False) == HostCpu(model="", models=("qemu64",))
    assert read_capabilities(tmp_path).files(with_kvm=True) == {}


@pytest.mark.parametrize("text", [None, "", "{}", '{"model": 1}', "\xff"])
def test_a_missing_or_malformed_host_cpu_is_none(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "kvm").mkdir()
    if text is not None:
        (tmp_path / "kvm" / "cpu.json").write_text(text)
    assert read_host_cpu(tmp_path, with_kvm=True) is None

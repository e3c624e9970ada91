# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capability probe without a libvirtd: it never fails its Pod. Lab tests cover it with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.domain import layout
from controlplane.virt_launcher import capabilities


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A container without libvirtd and /dev/kvm."""
    monkeypatch.setattr(capabilities, "_LIBVIRTD", str(tmp_path / "libvirtd"))
    monkeypatch.setattr(capabilities, "_KVM", str(tmp_path / "kvm"))
    return tmp_path


def test_without_libvirtd_the_probe_succeeds_with_no_result(nothing: Path) -> None:
    assert capabilities.main([str(nothing / "out")]) == 0
    assert [path.name for path in (nothing / "out").iterdir()] == ["emulation"]
    assert list((nothing / "out" / "emulation").iterdir()) == []


@pytest.mark.parametrize(
    ("mounts", "is_private"),
    [
        ("tmpfs /dev tmpfs rw,nosuid 0 0\ndevpts /dev/pts devpts rw 0 0\n", True),
        ("udev /dev devtmpfs rw,nosuid 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n", False),
        ("overlay / overlay rw 0 0\n", False),
    ],
    ids=["the container's", "the node's", "none"],
)
def test_only_the_containers_own_kvm_device_is_closed_and_opened(
    nothing: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, is_private: bool
) -> None:
    """The node's /dev/kvm is shared: closing it for a moment would fail other starts."""
    (nothing / "kvm").touch()
    modes: list[int] = []
    monkeypatch.setattr(capabilities.os, "geteuid", lambda: 0)
    monkeypatch.setattr(capabilities.os, "chmod", lambda _path, mode: modes.append(mode))
    monkeypatch.setattr(capabilities.Path, "read_text", lambda _path: mounts)
    monkeypatch.setattr(capabilities, "_attempt_as_launcher", lambda _target: None)

    assert capabilities.main([str(nothing / "out")]) == 0
    assert modes == ([0o600, 0o666] if is_private else [])


def test_libvirtd_gets_the_launchers_directories_below_another_root() -> None:
    environment = capabilities._environment(Path("/scratch"))
    assert environment["XDG_RUNTIME_DIR"] == "/scratch"
    assert environment["XDG_CACHE_HOME"] == "/scratch/cache"
    assert layout.CAPABILITY_CACHE[:2] == ("cache", "libvirt")


CACHE = """<qemuCaps>
  <qemuctime>1795500000</qemuctime>
  <flag name='x86-max-cpu'/>
  <flag name='cpu-unavailable-features'/>
  <flag name='canonical-cpu-features'/>
</qemuCaps>
"""


class Probe:
    """A libvirtd that has written its QEMU capabilities."""

    def __init__(self, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async def probe(run: Path, *, with_kvm: bool) -> dict[str, str] | None:
            cache = run.joinpath(*layout.CAPABILITY_CACHE)
            cache.mkdir(parents=True)
            (cache / "926803a9.xml").write_text(CACHE)
            return {"model": "EPYC" if with_kvm else ""}

        monkeypatch.setattr(capabilities, "_probe", probe)
        target.mkdir()
        capabilities._attempt(target)
        self.left = {path.name: path.read_text() for path in target.iterdir()}


def test_an_emulated_cpu_is_queried_for_all_features_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise libvirt queries each of 463 properties, which takes most of a start."""
    capabilities_xml = Probe(tmp_path / "emulation", monkeypatch).left["926803a9.xml"]

    assert capabilities_xml == CACHE.replace("  <flag name='cpu-unavailable-features'/>\n", "")


def test_capabilities_with_kvm_are_kept_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With KVM, libvirt compares the features of guest and host CPUs, including model-specific registers."""
    assert Probe(tmp_path / "kvm", monkeypatch).left["926803a9.xml"] == CACHE


def test_the_cpu_is_written_for_guests_with_and_without_kvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Probe(tmp_path / "kvm", monkeypatch).left["cpu.json"] == '{"model": "EPYC"}'
    assert Probe(tmp_path / "emulation", monkeypatch).left["cpu.json"] == '{"model": ""}'

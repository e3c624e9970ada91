# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain import layout
from controlplane.virt_launcher.guest import libvirtd


def test_libvirtd_gets_a_clean_environment_and_its_own_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services and webhooks of the namespace add variables. Signals to the launcher's group are not for libvirtd."""
    arguments: dict[str, Any] = {}
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: arguments.update(options, command=command))
    monkeypatch.setenv("LIBVIRT_LOG_OUTPUTS", "1:file:/tmp/log")
    monkeypatch.setenv("LD_PRELOAD", "/tmp/theirs.so")

    libvirtd.spawn()

    homes = {"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"}
    assert arguments["env"].keys() == {*homes, "LANG", "PATH"}
    assert {arguments["env"][name].split(layout.RUN)[0] for name in homes} == {""}
    assert arguments["start_new_session"] is True
    assert arguments["stdin"] == arguments["stdout"] == subprocess.DEVNULL


@pytest.mark.parametrize(
    ("shared", "line"),
    [
        pytest.param((), "shared_filesystems = []", id="none"),
        pytest.param(
            ("/img/claims/a", "/img/claims/b"), 'shared_filesystems = ["/img/claims/a", "/img/claims/b"]', id="two"
        ),
    ],
)
def test_libvirtd_knows_the_directories_that_a_target_mounts_as_well(
    shared: tuple[str, ...], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it refuses to migrate a guest with a file there: "Migration without shared storage is unsafe"."""
    monkeypatch.setattr(layout, "RUN", str(tmp_path))
    libvirtd.make_home(shared)
    assert line in (tmp_path / "config/libvirt/qemu.conf").read_text().splitlines()

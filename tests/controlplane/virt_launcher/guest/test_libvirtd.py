# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
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

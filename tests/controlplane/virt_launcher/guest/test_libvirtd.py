# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from typing import Any

import pytest

from controlplane.domain import layout
from controlplane.virt_launcher.guest import libvirtd


def test_it_gets_nothing_of_our_environment_and_none_of_our_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace's Services and webhooks put there what they like; and whoever signals our group means us."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: asked.update(options, command=command))
    monkeypatch.setenv("LIBVIRT_LOG_OUTPUTS", "1:file:/tmp/log")
    monkeypatch.setenv("LD_PRELOAD", "/tmp/theirs.so")

    libvirtd.spawn()

    homes = {"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"}
    assert asked["env"].keys() == {*homes, "LANG", "PATH"}
    assert {asked["env"][name].split(layout.RUN)[0] for name in homes} == {""}
    assert asked["start_new_session"] is True
    assert asked["stdin"] == asked["stdout"] == subprocess.DEVNULL

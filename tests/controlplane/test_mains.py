# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every process does before it serves. Its own tests cover the rest."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Coroutine
from types import ModuleType
from typing import Any

import pytest
import uvloop

from controlplane.process import logs
from controlplane.virt_api import __main__ as virt_api
from controlplane.virt_controller import __main__ as virt_controller
from controlplane.virt_handler import __main__ as virt_handler
from controlplane.virt_node import __main__ as virt_node

ENVIRONMENT = {"NODE_NAME": "node-1", "POD_NAME": "pod", "POD_NAMESPACE": "kubevirt", "VIRT_LAUNCHER_IMAGE": "image"}


each_process = pytest.mark.parametrize(
    "process", [virt_api, virt_controller, virt_handler, virt_node], ids=lambda process: process.__name__.split(".")[1]
)


@each_process
def test_a_process_with_many_connections_raises_its_descriptor_limit(
    process: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection, launcher or Pod takes some, and 1,024 are usual."""
    done: list[str] = []

    def run(serving: Coroutine[Any, Any, None]) -> None:
        serving.close()
        done.append("served")

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(logs, "configure", lambda *_unused: None)
    monkeypatch.setattr(sys, "setswitchinterval", lambda _seconds: None)
    monkeypatch.setattr(process, "raise_descriptor_limit", lambda: done.append("allowed many"))
    for loops in (asyncio, uvloop):
        monkeypatch.setattr(loops, "run", run)
    level = logging.getLogger("hpack").level

    code = process.main()

    logging.getLogger("hpack").setLevel(level)
    assert (code, done) == (0, ["allowed many", "served"])


@each_process
def test_an_invalid_setting_is_reported_and_ends_the_process(
    process: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**ENVIRONMENT, "LOG_LEVEL": "loud"}.items():
        monkeypatch.setenv(name, value)
    assert process.main() == 2
    assert "unknown log level 'loud'" in capsys.readouterr().err


def test_virt_api_uses_a_short_thread_switch_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's default of 5 ms is five times the budget of the event loop for each step of a response."""
    intervals: list[float] = []
    monkeypatch.setenv("POD_NAMESPACE", "kubevirt")
    monkeypatch.setattr(logs, "configure", lambda *_unused: None)
    monkeypatch.setattr(virt_api, "raise_descriptor_limit", lambda: None)
    monkeypatch.setattr(sys, "setswitchinterval", intervals.append)
    monkeypatch.setattr(uvloop, "run", lambda serving: serving.close())

    level = logging.getLogger("hpack").level
    assert virt_api.main() == 0
    logging.getLogger("hpack").setLevel(level)
    assert intervals == [0.001]


@pytest.mark.parametrize("module", ["sqlite3", "aiohttp", "libvirt", "kubernetes"])
def test_virt_node_imports_only_what_it_needs(module: str) -> None:
    """It runs on every node as root."""
    program = f"import sys, controlplane.virt_node.__main__; sys.exit({module!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

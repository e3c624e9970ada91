# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from controlplane.hypervisor.connection import register_event_loop
from tests.controlplane.hypervisor import fake_libvirt, hostile
from tests.controlplane.hypervisor.hostile import Behaviour, Hostile, Spawn


@dataclass
class OnFake:
    """Modules of controlplane.hypervisor, imported with the fake binding."""

    libvirt: Any
    errors: Any
    calls: Any
    events: Any
    domain: Any


@pytest.fixture
def on_fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[OnFake]:
    """Import the package again with the fake binding. Restore the modules afterwards."""
    binding = fake_libvirt.make_module()
    prefix = "controlplane.hypervisor"
    kept = {name: module for name, module in sys.modules.items() if name.startswith(prefix)}
    monkeypatch.setitem(sys.modules, "libvirt", binding)
    for name in kept:
        monkeypatch.delitem(sys.modules, name)
    names = ("errors", "calls", "events", "domain")
    fresh: list[types.ModuleType] = [importlib.import_module(f"{prefix}.{name}") for name in names]
    yield OnFake(binding, *fresh)
    for name in [name for name in sys.modules if name.startswith(prefix)]:
        del sys.modules[name]
    sys.modules.update(kept)
    if "controlplane" in sys.modules and prefix in kept:
        sys.modules["controlplane"].hypervisor = kept[prefix]  # type: ignore[attr-defined]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def libvirt_loop() -> None:
    """Register the session's loop with libvirt, which accepts one loop per process."""
    register_event_loop()


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Return a function that makes servers. They are closed at the end."""
    servers: list[Hostile] = []

    def make(behave: Behaviour = hostile.GOOD, **options: bool) -> Hostile:
        servers.append(Hostile(Path(os.path.relpath(tmp_path)).absolute() / f"s{len(servers)}", behave, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()

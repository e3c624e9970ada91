# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Iterator

import pytest
import pytest_asyncio

from controlplane.hypervisor.connection import register_event_loop
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod, unpack


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """The launcher's image with the code of this tree, and the test guest's."""
    from images.build import Options, build  # noqa: PLC0415 - only these tests need the builder
    from images.store import Store, cache_directory  # noqa: PLC0415

    home = tmp_path_factory.mktemp("images")
    store = Store(cache_directory(), lambda text: None)
    unpacked = {}
    for name in ("virt-launcher", "test-guest"):
        built = build(name, store, None, Options(tag="test"))
        unpacked[name] = unpack(built.image.path, home / name)
    yield Images(home / "virt-launcher", home / "test-guest", tuple(unpacked["virt-launcher"]["Entrypoint"]))
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def keep_pod(tmp_path: pathlib.Path) -> Iterator[Callable[[LauncherPod], LauncherPod]]:
    """Register a Pod so that nothing of it is left."""
    made: list[LauncherPod] = []

    def keep(pod: LauncherPod) -> LauncherPod:
        made.append(pod)
        return pod

    yield keep
    for pod in made:
        pod.remove()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def libvirt_loop() -> None:
    register_event_loop()

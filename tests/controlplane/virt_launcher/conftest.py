# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Iterator

import pytest
import pytest_asyncio

from controlplane.domain import layout
from controlplane.hypervisor.connection import register_event_loop
from tests.controlplane.virt_launcher.launched import PLAN
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod, built_images


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Build the launcher image from this tree and the test guest image."""
    home = tmp_path_factory.mktemp("images")
    yield built_images(home)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def keep_pod(tmp_path: pathlib.Path) -> Iterator[Callable[[LauncherPod], LauncherPod]]:
    """Return a function that registers a Pod for removal at the end."""
    pods: list[LauncherPod] = []

    def keep(pod: LauncherPod) -> LauncherPod:
        pods.append(pod)
        return pod

    yield keep
    for pod in pods:
        pod.remove()


@pytest.fixture
def pod(images: Images, tmp_path: pathlib.Path, keep_pod: Callable[[LauncherPod], LauncherPod]) -> LauncherPod:
    """A started launcher for `launched.VMI`."""
    started = keep_pod(LauncherPod(tmp_path, images, PLAN, {layout.image_mount("root"): images.guest}))
    started.start()
    return started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def libvirt_loop() -> None:
    register_event_loop()

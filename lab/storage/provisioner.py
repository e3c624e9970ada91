# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's storage: a program of the control plane that creates a volume for each claim and removes it later.

It needs no Pod, because it can access the directories of all nodes. volumes.py decides what to do.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import threading
from pathlib import Path

from lab.cluster.api import Api
from lab.errors import ApiError, LabError
from lab.machines import loops
from lab.paths import State
from lab.storage.volumes import (
    Object,
    Provision,
    Reclaim,
    build_volume,
    content_path,
    decide,
    device_path,
    disk_path,
    node_of,
    volume_directory,
)

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
RETRY_SECONDS = 1.0

log = logging.getLogger("lab.storage")


class Storage:
    """Reconciles all claims and volumes after each change of one."""

    def __init__(self, state: State, server: str) -> None:
        self._state, self._server = state, server
        self._changed = threading.Event()
        self._api = Api(server, state.certificates)

    def serve(self) -> None:
        for path in (CLAIMS, VOLUMES):
            threading.Thread(target=self._watch, args=(path,), daemon=True).start()
        is_first = True
        while True:
            self._changed.clear()
            try:
                claims, volumes = self._list(CLAIMS), self._list(VOLUMES)
                if is_first:
                    self._attach_again(volumes)
                    is_first = False
                self._apply(claims, volumes)
            except ApiError as error:
                log.warning("cannot look at claims and volumes: %s", error)
                self._changed.wait(RETRY_SECONDS)
                continue
            self._changed.wait()

    def _list(self, path: str) -> list[Object]:
        items: list[Object] = (self._api.get(path) or {}).get("items", [])
        return items

    def _watch(self, path: str) -> None:
        """Signal each change, and each interruption of the watch."""
        api = Api(self._server, self._state.certificates)
        pause = threading.Event()
        while True:
            try:
                listed = api.get(f"{path}?limit=1") or {}
                self._changed.set()
                for event in api.watch(path, resource_version=listed["metadata"]["resourceVersion"]):
                    if event["type"] != "BOOKMARK":
                        self._changed.set()
            except ApiError as error:
                log.info("watch again: %s", error)
                pause.wait(RETRY_SECONDS)

    def _apply(self, claims: list[Object], volumes: list[Object]) -> None:
        for action in decide(claims, volumes, self._state):
            try:
                if isinstance(action, Provision):
                    self._provision(action)
                else:
                    self._reclaim(action)
            except (OSError, ValueError, LabError) as error:
                # The other volumes continue. The next change, or the timer, retries this one.
                log.warning("volume %s: %s", action.name, error)
                threading.Timer(RETRY_SECONDS, self._changed.set).start()

    def _provision(self, action: Provision) -> None:
        directory = volume_directory(action.name, action.node, self._state)
        directory.mkdir(parents=True, exist_ok=True)
        if action.is_block:
            make_disk(directory, action.size_bytes)
        else:
            content = content_path(directory)
            content.mkdir(exist_ok=True)
            content.chmod(0o777)  # Pods may run as any user
        self._api.create(VOLUMES, build_volume(action, self._state))
        log.info("made %s", action.name)

    def _reclaim(self, action: Reclaim) -> None:
        loops.detach_below(action.path)
        if action.path.exists():
            shutil.rmtree(action.path)
        self._api.delete(f"{VOLUMES}/{action.name}")
        log.info("removed %s", action.name)

    def _attach_again(self, volumes: list[Object]) -> None:
        """Attach loop devices again: they are gone after a reboot of the host, the files are not."""
        for volume in volumes:
            path = volume["spec"].get("local", {}).get("path", "")
            if volume["spec"].get("volumeMode") == "Block" and Path(path).is_relative_to(self._state.root):
                attach_disk(volume_directory(volume["metadata"]["name"], node_of(volume), self._state))


def make_disk(directory: Path, size_bytes: int) -> None:
    disk = disk_path(directory)
    if not disk.exists():
        with disk.open("wb") as file:
            file.truncate(size_bytes)
    attach_disk(directory)


def attach_disk(directory: Path) -> None:
    """Attach a loop device to the disk, and create a device node with a path that does not depend on its number."""
    name = loops.attach(disk_path(directory))
    device = device_path(directory)
    number = os.stat(f"/dev/{name}").st_rdev
    if device.exists() and device.stat().st_rdev == number:
        return
    device.unlink(missing_ok=True)
    os.mknod(device, stat.S_IFBLK | 0o660, number)

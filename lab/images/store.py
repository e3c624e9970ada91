# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A prepared image store for new nodes.

A new node's containerd starts with a copy of a store that was filled once and is in the cache: hard links to the
layers, real copies of the databases and of a few programs. This takes 50 ms, instead of an import per node.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from lab.errors import LabError
from lab.images.archive import Archive
from lab.images.containerd import containerd_configuration
from lab.images.imports import import_commands
from lab.locks import locked
from lab.machines.machine import search_path
from lab.paths import Cache
from lab.programs.ensure import Programs
from lab.progress import Progress

KEPT_STORES = 3
RECENT_SECONDS = 3600
_PROGRAMS = "io.containerd.snapshotter.*/snapshots/*/fs/usr/*bin"
COPIED = ("**/*.db", f"{_PROGRAMS}/libvirtd", f"{_PROGRAMS}/qemu-system-*")
"""Databases, which containerd writes, and programs with whose ctime libvirt identifies its capability cache. A hard
link changes the ctime of its file, so another lab's start would invalidate the caches of all running nodes.
"""


def ensure_store(cache: Cache, programs: Programs, archives: list[Archive], runc: str, progress: Progress) -> Path:
    """Return a containerd root directory with these images. It is created once per set of images."""
    text = "\n".join([programs.node("containerd").parent.name, *sorted(archive.digest for archive in archives)])
    target = cache.images / f"store-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not target.is_dir():
        with locked(cache, "images", progress):
            if not target.is_dir():
                progress(f"filling an image store with {len(archives)} images")
                _fill_store(cache, target, programs, archives, runc)
                _drop_old_stores(cache.images, now=time.time())
    os.utime(target)
    return target


def _drop_old_stores(directory: Path, *, now: float) -> None:
    """Remove old stores. Every build of an image creates another one. Nodes keep their files, which are hard links."""
    stores = sorted(directory.glob("store-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for store in stores[KEPT_STORES:]:
        if now - store.stat().st_mtime > RECENT_SECONDS:  # no node is being copied from it now
            shutil.rmtree(store)


def _fill_store(cache: Cache, target: Path, programs: Programs, archives: list[Archive], runc: str) -> None:
    cache.images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.images, prefix=".store-") as scratch:
        root, run = Path(scratch) / "root", Path(tempfile.mkdtemp(prefix="lab-store-"))
        try:
            _import_offline(root, run, programs, archives, runc)
        finally:
            shutil.rmtree(run, ignore_errors=True)
        root.rename(target)


def _import_offline(root: Path, run: Path, programs: Programs, archives: list[Archive], runc: str) -> None:
    """Import with a separate containerd in a mount namespace, so that its mounts end with it."""
    configuration, socket = run / "containerd.toml", run / "containerd.sock"
    configuration.write_text(
        containerd_configuration([programs.node_directory], runc, root=str(root), state=str(run), socket=str(socket))
        + "[debug]\n  level = 'error'\n"
    )
    environment = {"PATH": search_path(*programs.directories("containerd-shim-runc-v2")), "HOME": "/root"}
    with (run / "log").open("wb") as log:
        daemon = subprocess.Popen(
            ["unshare", "--mount", "--", str(programs.node("containerd")), "--config", str(configuration)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        _wait_for_socket(socket, daemon, run / "log")
        for archive in archives:
            for command in import_commands(archive, programs.node("ctr"), str(socket), str(archive.path)):
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise LabError(f"cannot import {archive.path}: {done.stderr.strip()}")
    finally:
        daemon.terminate()
        daemon.wait()


def _wait_for_socket(socket: Path, daemon: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while not socket.exists():
        if daemon.poll() is not None or time.monotonic() > deadline:
            last = log.read_text().strip().splitlines()[-1:]
            raise LabError(f"containerd did not start: {' '.join(last)}")
        time.sleep(0.02)


def clone_store(store: Path, target: Path) -> None:
    """Give a new node the store's images. Files in COPIED are copied, all others are hard links."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    linked = subprocess.run(["cp", "-al", store, partial], capture_output=True, check=False)
    if linked.returncode != 0:  # hard links do not work across file systems
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["cp", "-a", store, partial], check=True)
    for pattern in COPIED:
        for file in list(partial.glob(pattern)):
            copy = file.with_name(f"{file.name}.copy")
            shutil.copy2(file, copy)
            copy.replace(file)
    partial.rename(target)

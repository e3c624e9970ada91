# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of a lab's nodes: a ready-made store for new nodes, and imports into running ones.

A new node's containerd starts on a copy of a store that was filled once and lies in the cache: hard links to the
layers, real copies of the databases. 24 ms instead of an import per node.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from images.oci import Config, LayerWriter, write_archive
from lab.build import Programs, locked
from lab.errors import LabError
from lab.machine import Machine, search_path
from lab.manifests import COREDNS_IMAGE
from lab.node import CONTAINERD_SOCKET, PAUSE_IMAGE, containerd_configuration
from lab.paths import Cache
from lab.progress import Progress

KEPT_STORES = 3
RECENT_SECONDS = 3600
_NAME_ANNOTATIONS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


@dataclass(frozen=True, kw_only=True)
class Archive:
    """An OCI archive on disk. Its digest is that of its index, so equal images have equal digests."""

    path: Path
    digest: str
    reference: str
    manifest: str
    """`sha256:...` of what the reference stands for."""

    @property
    def repository(self) -> str:
        """The reference without its tag."""
        head, _unused, tail = self.reference.rpartition(":")
        return head if head and "/" not in tail else self.reference


def read_archive(path: Path, *, reference: str | None = None) -> Archive:
    """Read what the archive says of itself; LabError when it is not one or names no image."""
    try:
        with tarfile.open(path) as archive:
            member = archive.extractfile("index.json")
            content = member.read() if member else b""
            index: dict[str, Any] = json.loads(content)
    except FileNotFoundError as error:
        raise LabError(f"{path}: no such file; give the path of an OCI archive") from error
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        reason = str(error).splitlines()[0].rstrip(":")
        raise LabError(
            f"{path} is not an OCI archive ({reason}); write one with `buildah push IMAGE oci-archive:FILE:NAME:TAG`"
        ) from error
    named = reference or _name_in(index)
    if not named:
        raise LabError(f"{path} does not say what the image is called; add --reference NAME:TAG")
    manifests = index.get("manifests") or [{}]
    if len(manifests) != 1 or "digest" not in manifests[0]:
        raise LabError(f"{path} holds {len(manifests)} images; the lab imports archives of one image each")
    digest = hashlib.sha256(content + named.encode()).hexdigest()
    return Archive(path=path, digest=digest, reference=full_reference(named), manifest=manifests[0]["digest"])


def _name_in(index: dict[str, Any]) -> str | None:
    for manifest in index.get("manifests", []):
        for key in _NAME_ANNOTATIONS:
            name = manifest.get("annotations", {}).get(key)
            # A bare tag ("latest") is a name for a layout, not for a cluster.
            if isinstance(name, str) and "/" in name:
                return name
    return None


def full_reference(name: str) -> str:
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def import_commands(archive: Archive, client: Path, socket: str, source: str) -> list[list[str]]:
    """Command lines for one import; the first reads the archive from `source`, "-" for its standard input.

    `--local` makes the digest record that of the manifest, so that NAME@sha256:... resolves, too. The second gives
    the image its name, whatever annotation the archive's writer used, if any.
    """
    ctr = [str(client), "--address", socket, "--namespace", "k8s.io", "images"]
    record = f"{archive.repository}@{archive.manifest}"
    return [
        [*ctr, "import", "--local", "--digests", "--base-name", archive.repository, source],
        [*ctr, "tag", "--force", record, archive.reference],
    ]


def has_imported(machine: Machine, archive: Archive) -> bool:
    return _mark(machine, archive).exists()


def mark_imported(machine: Machine, archive: Archive) -> None:
    mark = _mark(machine, archive)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def _mark(machine: Machine, archive: Archive) -> Path:
    return machine.paths.root / "imported" / archive.digest


def keep(archive: Archive, directory: Path) -> Archive:
    """Keep the archive with the lab's state, for nodes that join later: a hard link where that is possible."""
    directory.mkdir(parents=True, exist_ok=True)
    kept = directory / f"{archive.digest}.tar"
    if not kept.exists():
        try:
            os.link(archive.path.resolve(), kept)
        except OSError:
            partial = kept.with_suffix(f".{os.getpid()}")
            shutil.copyfile(archive.path, partial)
            partial.replace(kept)
    return replace(archive, path=kept)


def kept_archives(references: dict[str, str], directory: Path) -> list[Archive]:
    return [
        read_archive(directory / f"{digest}.tar", reference=reference)
        for digest, reference in references.items()
        if (directory / f"{digest}.tar").exists()
    ]


def import_into(machine: Machine, archive: Archive, client: Path) -> None:
    load, tag = import_commands(archive, client, CONTAINERD_SOCKET, "-")
    with archive.path.open("rb") as stream:
        machine.run(load, stdin=stream.fileno())
    machine.run(tag)
    mark_imported(machine, archive)


def list_references(machine: Machine, program: Path) -> list[str]:
    command = [str(program), "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images", "list", "--quiet"]
    names = machine.run(command).stdout.split()
    return sorted(name for name in names if "@" not in name and not name.startswith("sha256:"))


def ensure_system_archives(cache: Cache, programs: Programs, progress: Progress) -> list[Archive]:
    """The two images a node cannot do without: pause and CoreDNS, each one program in an empty root."""
    target = cache.images / f"system-{programs.node_directory.name}"
    wanted = {"pause": PAUSE_IMAGE, "coredns": COREDNS_IMAGE}
    if not target.is_dir():
        with locked(cache, "images", progress):
            if not target.is_dir():
                _write_system_archives(cache, target, wanted, programs)
    return [read_archive(target / f"{name}.tar") for name in wanted]


def _write_system_archives(cache: Cache, target: Path, wanted: dict[str, str], programs: Programs) -> None:
    cache.images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.images, prefix=".system-") as scratch:
        output = Path(scratch) / "out"
        output.mkdir()
        for name, reference in wanted.items():
            with LayerWriter(Path(scratch) / f"{name}.layer") as layer:
                layer.file(f"usr/bin/{name}", programs.node(name), mode=0o755)
            write_archive(output / f"{name}.tar", reference, [layer.layer], Config(entrypoint=(f"/usr/bin/{name}",)))
        output.rename(target)


def ensure_store(cache: Cache, programs: Programs, archives: list[Archive], runc: str, progress: Progress) -> Path:
    """A containerd root directory with these images, made once per set of images."""
    text = "\n".join([programs.node_directory.name, *sorted(archive.digest for archive in archives)])
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
    """Every new build of an image makes another store. What nodes have of an old one stays theirs: hard links."""
    stores = sorted(directory.glob("store-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for store in stores[KEPT_STORES:]:
        if now - store.stat().st_mtime > RECENT_SECONDS:  # nobody copies from it right now
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
    """Run containerd on its own in a mount namespace, so that the mounts of unpacking end with it."""
    configuration, socket = run / "containerd.toml", run / "containerd.sock"
    configuration.write_text(
        containerd_configuration(programs.node_directory, runc, root=str(root), state=str(run))
        + "[debug]\n  level = 'error'\n"
    )
    environment = {"PATH": search_path(programs.node_directory), "HOME": "/root"}
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
    """Give a new node the store's images. What containerd writes to is copied, everything else is shared."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    linked = subprocess.run(["cp", "-al", store, partial], capture_output=True, check=False)
    if linked.returncode != 0:  # another file system: hard links do not reach there
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["cp", "-a", store, partial], check=True)
    for database in partial.rglob("*.db"):
        copy = database.with_suffix(".copy")
        shutil.copy2(database, copy)
        copy.replace(database)
    partial.rename(target)

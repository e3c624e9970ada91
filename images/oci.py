# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write OCI image archives, which `ctr images import`, `podman load` and `docker load` read. Standard library only.

A `LayerWriter` writes a layer, `write_archive` combines layers. Equal contents give equal bytes and equal digests:
times are fixed, owners are numbers, nothing depends on the machine. recipes.py has the content of our images.

    with LayerWriter(Path("layer.tar")) as writer:
        writer.file("usr/bin/pause", Path("pause"), mode=0o755)
    write_archive(Path("pause.tar"), "localhost/lab/pause:1", [writer.layer], Config(entrypoint=("/usr/bin/pause",)))
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

MODIFIED_SECONDS = 1_767_225_600
"""The modification time of every file in every layer: 2026-01-01 UTC."""

_CREATED = "2026-01-01T00:00:00Z"
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_REFERENCE = re.compile(r"[a-z0-9.-]+(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Layer:
    """An uncompressed layer: a tar file and its SHA-256, which is also its diff ID."""

    path: Path
    sha256: str

    @classmethod
    def measure(cls, path: Path) -> Layer:
        """Return any tar file as a layer."""
        with path.open("rb") as stream:
            return cls(path, hashlib.file_digest(stream, "sha256").hexdigest())


@dataclass(frozen=True, slots=True)
class Config:
    """How a runtime runs the image. A Pod can override it."""

    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    """Numeric `uid` or `uid:gid`; "" is root."""
    working_directory: str = "/"
    labels: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "amd64"


@dataclass(frozen=True, slots=True)
class Image:
    """A written archive."""

    path: Path
    reference: str
    digest: str
    """`sha256:...` of the manifest, the part after the @ in a reference."""


class _Hashing(io.RawIOBase):
    """A stream that hashes what is written to it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._hash.update(data)
        return self._stream.write(data)

    def tell(self) -> int:
        return self._stream.tell()

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


class LayerWriter:
    """Write a layer file by file. Missing parents are added. `layer` is set at the end of the block.

    Add entries in a fixed order: the order is part of the digest. An exception removes the file.
    """

    layer: Layer

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}")
        self._seen: set[str] = set()

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._partial.open("wb")
        self._hashing = _Hashing(self._file)
        self._tar = tarfile.TarFile(fileobj=self._hashing, mode="w", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._tar.close()
        self._file.close()
        if kind is not None:
            self._partial.unlink()
            return
        self._partial.replace(self._path)
        self.layer = Layer(self._path, self._hashing.hexdigest())

    def directory(self, name: str, *, mode: int = 0o755, owner: int = 0) -> None:
        """Add a directory, owned by user and group `owner`."""
        self._add(name, tarfile.DIRTYPE, mode, owner)

    def symlink(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(name, tarfile.SYMTYPE, 0o777, 0, target=target)

    def file(self, name: str, content: bytes | Path, *, mode: int = 0o644, owner: int = 0) -> None:
        """Add a regular file with these bytes, or with the content of the file at a path."""
        if isinstance(content, bytes):
            self.stream(name, io.BytesIO(content), len(content), mode=mode, owner=owner)
            return
        with content.open("rb") as stream:
            self.stream(name, stream, content.stat().st_size, mode=mode, owner=owner)

    def stream(self, name: str, stream: IO[bytes], size: int, *, mode: int = 0o644, owner: int = 0) -> None:
        """Add a regular file with the next `size` bytes of a stream."""
        self._add(name, tarfile.REGTYPE, mode, owner, stream=stream, size=size)

    def _add(
        self,
        name: str,
        kind: bytes,
        mode: int,
        owner: int,
        *,
        target: str = "",
        stream: IO[bytes] | None = None,
        size: int = 0,
    ) -> None:
        clean = name.strip("/")
        if clean in self._seen:
            if kind == tarfile.DIRTYPE:
                return
            raise ValueError(f"layer {self._path} would hold {clean} twice")
        parent = clean.rpartition("/")[0]
        if parent and parent not in self._seen:
            self.directory(parent)
        self._seen.add(clean)
        entry = tarfile.TarInfo(clean)
        entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, size
        entry.uid = entry.gid = owner
        entry.mtime = MODIFIED_SECONDS
        self._tar.addfile(entry, stream)


def digest_of(layers: Sequence[Layer], config: Config) -> str:
    """Return the digest of an image of these layers. It does not depend on the image's name."""
    return f"sha256:{hashlib.sha256(_json(_manifest(layers, _json(_config(layers, config))))).hexdigest()}"


def write_archive(path: Path, reference: str, layers: Iterable[Layer], config: Config) -> Image:
    """Write an OCI archive of these layers under the name `reference` (a repository with a tag).

    The file is written under another name and renamed. Raises ValueError if the reference has no registry or tag.
    """
    if not _REFERENCE.fullmatch(reference):
        raise ValueError(f"image reference {reference!r} is not of the form registry/repository:tag")
    all_layers = list(layers)
    configured = _json(_config(all_layers, config))
    manifest = _json(_manifest(all_layers, configured))
    digest = hashlib.sha256(manifest).hexdigest()
    index = _json(_index(reference, digest, len(manifest), config.architecture))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as sink:
            _put_bytes(sink, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            _put_bytes(sink, "index.json", index)
            for blob in (manifest, configured):
                _put_bytes(sink, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
            for layer in {layer.sha256: layer for layer in all_layers}.values():
                _put_file(sink, f"blobs/sha256/{layer.sha256}", layer.path)
            sink.write(b"\0" * (2 * tarfile.BLOCKSIZE))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return Image(path, reference, f"sha256:{digest}")


def _config(layers: Sequence[Layer], config: Config) -> dict[str, Any]:
    run: dict[str, Any] = {
        "Entrypoint": list(config.entrypoint),
        "Cmd": list(config.command),
        "Env": [f"{name}={value}" for name, value in sorted(config.environment.items())],
        "User": config.user,
        "WorkingDir": config.working_directory,
        "Labels": dict(sorted(config.labels.items())),
    }
    return {
        "architecture": config.architecture,
        "os": "linux",
        "created": _CREATED,
        "config": {name: value for name, value in run.items() if value},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.sha256}" for layer in layers]},
    }


def _manifest(layers: Sequence[Layer], configured: bytes) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(_CONFIG, hashlib.sha256(configured).hexdigest(), len(configured)),
        "layers": [_descriptor(_LAYER, layer.sha256, layer.path.stat().st_size) for layer in layers],
    }


def _index(reference: str, digest: str, size: int, architecture: str) -> dict[str, Any]:
    manifest = _descriptor(_MANIFEST, digest, size)
    manifest["platform"] = {"architecture": architecture, "os": "linux"}
    manifest["annotations"] = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
    }
    return {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [manifest]}


def _descriptor(media_type: str, sha256: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{sha256}", "size": size}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _put_bytes(sink: IO[bytes], name: str, data: bytes) -> None:
    _header(sink, name, len(data))
    sink.write(data)
    _pad(sink, len(data))


def _put_file(sink: IO[bytes], name: str, path: Path) -> None:
    size = path.stat().st_size
    _header(sink, name, size)
    with path.open("rb") as source:
        shutil.copyfileobj(source, sink, _CHUNK)
    _pad(sink, size)


def _header(sink: IO[bytes], name: str, size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = size, MODIFIED_SECONDS
    sink.write(entry.tobuf(tarfile.PAX_FORMAT))


def _pad(sink: IO[bytes], size: int) -> None:
    sink.write(b"\0" * (-size % tarfile.BLOCKSIZE))

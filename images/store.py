# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache of pieces of images between builds. The key of a piece is the hash of its inputs.

A piece is a file or a directory whose name ends in its key. A finished piece never changes. For each name the newest
four pieces are kept; older ones are removed when they can no longer be in use.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from images.oci import Layer

_KEPT = 4
_IN_USE_SECONDS = 900
"""Time after its creation in which a piece may be in use: written to an archive, copied to nodes."""


def cache_directory() -> Path:
    """Return the directory of all pieces: $VIRTOPS_CACHE/images, by default below ~/.cache/virtops."""
    return Path(os.environ.get("VIRTOPS_CACHE") or Path.home() / ".cache/virtops") / "images"


def key_of(*parts: object) -> str:
    """Hash values that JSON can represent. Equal values give equal keys on every machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def hash_of(path: Path) -> str:
    """Hash the contents of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class NotMadeError(Exception):
    """A read-only store does not have a piece."""


class Store:
    """Pieces in one directory. Several processes may use it: the second waits until the first has made the piece."""

    def __init__(
        self, root: Path, say: Callable[[str], None] = lambda _unused: None, *, is_read_only: bool = False
    ) -> None:
        self.root = root
        self._say = say
        self._is_read_only = is_read_only

    def for_reading(self) -> Store:
        """Return the same store, read-only."""
        return Store(self.root, self._say, is_read_only=True)

    def piece(self, name: str, key: str, make: Callable[[Path], None], *, fresh: bool = False) -> Path:
        """Return the piece with a key. `make(path)` makes it if it does not exist, or if `fresh` is set.

        Raises NotMadeError if this store is read-only and lacks the piece.
        """
        path = self.root / f"{name}-{key}"
        if self._is_read_only and (fresh or not path.exists()):
            raise NotMadeError(name)
        self.root.mkdir(parents=True, exist_ok=True)
        if path.exists() and not fresh:
            return path
        with self._locked(name):
            if path.exists() and not fresh:
                return path
            self._say(f"making {name}")
            with tempfile.TemporaryDirectory(dir=self.root, prefix=f".{name}-") as scratch:
                scratch_piece = Path(scratch) / "piece"
                make(scratch_piece)
                _remove(path)
                scratch_piece.rename(path)
            self._forget_old(name)
        return path

    def layer(self, name: str, key: str, make: Callable[[Path], None], *, fresh: bool = False) -> Layer:
        """Return a piece that is a layer, with its digest, which is stored beside the piece."""
        path = self.piece(name, key, make, fresh=fresh)
        noted = path.with_name(f"{path.name}.sha256")
        if not noted.exists() or noted.stat().st_mtime_ns < path.stat().st_mtime_ns:
            if self._is_read_only:
                raise NotMadeError(name)
            partial = noted.with_name(f".{noted.name}.{os.getpid()}")
            partial.write_text(Layer.measure(path).sha256)
            partial.replace(noted)
        return Layer(path, noted.read_text())

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self.root / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _forget_old(self, name: str) -> None:
        key_length = len(key_of())
        pieces = [path for path in self.root.glob(f"{name}-*") if len(path.name) == len(name) + 1 + key_length]
        for old in sorted(pieces, key=lambda piece: piece.stat().st_mtime_ns, reverse=True)[_KEPT:]:
            if time.time() - old.stat().st_mtime < _IN_USE_SECONDS:
                continue
            _remove(old)
            old.with_name(f"{old.name}.sha256").unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

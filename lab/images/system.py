# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two images that every node needs: pause and CoreDNS, each with one program in an empty root."""

from __future__ import annotations

import tempfile
from pathlib import Path

from images.oci import Config, LayerWriter, write_archive
from lab.images.archive import Archive, read_archive
from lab.locks import locked
from lab.paths import Cache
from lab.programs.ensure import Programs
from lab.progress import Progress

PAUSE_IMAGE = "localhost/lab/pause:1"
COREDNS_IMAGE = "localhost/lab/coredns:1"


def ensure_system_archives(cache: Cache, programs: Programs, progress: Progress) -> list[Archive]:
    """Return the archives. They are written to the cache once per build of their programs."""
    images = {"pause": PAUSE_IMAGE, "coredns": COREDNS_IMAGE}
    target = cache.images / "-".join(["system", *dict.fromkeys(programs.node(name).parent.name for name in images)])
    if not target.is_dir():
        with locked(cache, "images", progress):
            if not target.is_dir():
                _write_system_archives(cache, target, images, programs)
    return [read_archive(target / f"{name}.tar") for name in images]


def _write_system_archives(cache: Cache, target: Path, references: dict[str, str], programs: Programs) -> None:
    cache.images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.images, prefix=".system-") as scratch:
        output = Path(scratch) / "out"
        output.mkdir()
        for name, reference in references.items():
            with LayerWriter(Path(scratch) / f"{name}.layer") as layer:
                layer.file(f"usr/bin/{name}", programs.node(name), mode=0o755)
            write_archive(output / f"{name}.tar", reference, [layer.layer], Config(entrypoint=(f"/usr/bin/{name}",)))
        output.rename(target)

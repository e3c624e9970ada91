# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A read-only registry of the built images, for nodes that are to pull: python -m tests.registry ADDRESS FILE.

Plain HTTP on a free port of ADDRESS. Port, pid and digests go to FILE, as JSON. Serves what the OCI distribution
specification calls pull: manifests by tag or digest, and blobs. $REGISTRY_CREDENTIALS, `USER:PASSWORD`, says to whom.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tarfile
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from images.build import Options, build
from images.store import Store, cache_directory


@dataclass(frozen=True)
class Shelf:
    """One image: its manifest's digest, and all its blobs by digest."""

    tag: str
    manifest: str
    media_type: str
    blobs: dict[str, bytes]


def read_archive(path: Path) -> Shelf:
    """Read an OCI archive of one image."""
    with tarfile.open(path) as archive:
        held = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
        content = {name: file.read() for name, file in held.items() if file is not None}
    (manifest,) = json.loads(content["index.json"])["manifests"]
    blobs = {
        f"sha256:{name.rpartition('/')[2]}": blob for name, blob in content.items() if name.startswith("blobs/sha256/")
    }
    tag = manifest["annotations"]["org.opencontainers.image.ref.name"]
    return Shelf(tag, manifest["digest"], manifest["mediaType"], blobs)


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"

    def __init__(self, shelves: dict[str, Shelf], wanted: str, *arguments: Any) -> None:
        """wanted: the header Authorization, or "" if none is."""
        self._shelves = shelves
        self._wanted = wanted
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_unused: object) -> None:
        """Say nothing."""

    def _answer(self, *, with_body: bool) -> None:
        if self._wanted and self.headers.get("Authorization", "") != self._wanted:
            self._turn_away()
            return
        found = (b"{}", "application/json", "") if self.path.rstrip("/") == "/v2" else self._find()
        body, kind, digest = found or (b'{"errors": [{"code": "NAME_UNKNOWN"}]}', "application/json", "")
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _turn_away(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="registry"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _find(self) -> tuple[bytes, str, str] | None:
        """Read /v2/virtops/<image>/<manifests or blobs>/<tag or digest>."""
        parts = self.path.partition("?")[0].split("/")
        if len(parts) != 6 or parts[3] not in self._shelves:
            return None
        shelf, digest = self._shelves[parts[3]], parts[5]
        if parts[4] == "manifests":
            digest = shelf.manifest if digest == shelf.tag else digest
        blob = shelf.blobs.get(digest)
        kind = shelf.media_type if digest == shelf.manifest else "application/octet-stream"
        return None if blob is None else (blob, kind, digest)


def main() -> int:
    """Build what is to be served, and serve it until killed."""
    names = ("control-plane", "virt-launcher")
    built = {name: build(name, Store(cache_directory()), None, Options()) for name in names}
    shelves = {name: read_archive(one.image.path) for name, one in built.items()}
    credentials = os.environ.get("REGISTRY_CREDENTIALS", "")
    wanted = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else ""
    server = ThreadingHTTPServer((sys.argv[1], 0), partial(Handler, shelves, wanted))
    report = Path(sys.argv[2])
    half = report.with_suffix(".new")
    half.write_text(
        json.dumps(
            {
                "port": server.server_port,
                "pid": os.getpid(),
                "digests": {name: shelf.manifest for name, shelf in shelves.items()},
            }
        )
    )
    half.rename(report)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JavaScript libraries of the console page: unchanged files of npm packages, listed beside them in `libraries.json`.

`python3 -m images page-libraries` fetches them again. Another version: change `version` and empty `integrity` and
`sha256` of its entry, which the command then fills in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = Path("controlplane/virt_api/page")
"""In the collection."""
LIST = "libraries.json"
ROOT = "package"
"""npm packs everything below this directory; the files keep it, so that one rule of RBAC allows to read them all."""


class LibraryError(Exception):
    """A package cannot be fetched, or is not the recorded one. The text names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Library:
    """An entry of the list."""

    directory: str
    """Below the page."""
    package: str
    version: str
    licence: str
    files: list[str]
    """Patterns of the package's files that are kept; `*` matches across directories."""
    integrity: str
    """npm's checksum of the package."""
    sha256: str
    """`digest` of the files that are kept."""


def read(page: Path) -> list[Library]:
    """Return the entries of the list."""
    return [Library(**entry) for entry in json.loads((page / LIST).read_text())]


def kept(page: Path, library: Library) -> dict[str, bytes]:
    """Return the files of a library as they are in the page, by their path in the package."""
    root = page / library.directory / ROOT
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def digest(files: Mapping[str, bytes]) -> str:
    """Return one checksum of files: that of the output of `sha256sum`, sorted by path."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def fetch(page: Path) -> list[Library]:
    """Fetch all libraries anew and write them and the list. Raises LibraryError before it changes the library."""
    fetched = [_fetch(page, library) for library in read(page)]
    (page / LIST).write_text(json.dumps([asdict(library) for library in fetched], indent=2) + "\n")
    return fetched


def _fetch(page: Path, library: Library) -> Library:
    name = f"{library.package}@{library.version}"
    with tempfile.TemporaryDirectory(prefix="virtops-npm-") as scratch:
        _npm(["pack", "--silent", "--pack-destination", scratch, name])
        (archive,) = Path(scratch).glob("*.tgz")
        checksum = hashlib.sha512(archive.read_bytes()).digest()
        files = _unpack(archive, library.files)
    integrity = f"sha512-{base64.b64encode(checksum).decode()}"
    fetched = replace(library, integrity=integrity, sha256=digest(files))
    if library.integrity not in {"", integrity}:
        raise LibraryError(f"{name} has the checksum {integrity}, but {LIST} has {library.integrity}")
    if library.sha256 not in {"", fetched.sha256}:
        raise LibraryError(f"{name}: its files have the checksum {fetched.sha256}, but {LIST} has {library.sha256}")
    shutil.rmtree(page / library.directory, ignore_errors=True)
    for path, content in files.items():
        target = page / library.directory / ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return fetched


def _unpack(archive: Path, patterns: list[str]) -> dict[str, bytes]:
    """Read the files that match, by their path in the package. A pattern that matches none raises LibraryError."""
    files = {}
    with tarfile.open(archive) as package:
        for member in package:
            path = member.name.removeprefix(f"{ROOT}/")
            content = package.extractfile(member) if member.isfile() else None
            if content is not None and any(fnmatchcase(path, pattern) for pattern in patterns):
                files[path] = content.read()
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in files):
            raise LibraryError(f"{archive.name} has no file {pattern}: correct `files` in {LIST}")
    return files


def _npm(arguments: list[str]) -> None:
    program = shutil.which("npm")
    if program is None:
        raise LibraryError("there is no npm to fetch the libraries with: apt-get install npm")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LibraryError(f"npm {arguments[-1]} failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")

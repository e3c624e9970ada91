# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: `python3 -m images build|assemble|packages|lock|page-libraries`.

Printing and exit codes; the work is in build.py, wheels.py and page_libraries.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from images.build import COLLECTION, DEFAULT_PREFIX, Built, Options, assemble, build, plan
from images.mirrors import Mirrors
from images.page_libraries import PAGE, LibraryError, fetch
from images.precompile import CompileError
from images.recipes import NAMES, packages_file
from images.rootfs import RootfsError, parse_packages
from images.store import Store, cache_directory
from images.trim import TrimError
from images.wheels import WheelError, lock

_PROBLEMS = (CompileError, LibraryError, OSError, RootfsError, TrimError, ValueError, WheelError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. An error is printed to stderr, without a traceback."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except _PROBLEMS as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="images", description="Make the project's container images.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    making = commands.add_parser("build", help="build OCI archives, without a container engine")
    making.add_argument("--only", action="append", choices=NAMES, help="build only this image; repeatable")
    making.add_argument(
        "--output", type=Path, help="directory for archives called NAME.tar; by default they are in the cache only"
    )
    making.add_argument("--prefix", default=DEFAULT_PREFIX, help="prefix of the images' names")
    making.add_argument("--tag", default="", help="the images' tag; by default the collection's version")
    making.add_argument("--mirror", default="", help="URL of a Debian mirror; by default the one that apt uses here")
    making.add_argument(
        "--security-mirror", default="", help="URL of a mirror of Debian's security updates, beside --mirror"
    )
    making.add_argument("--fresh", action="store_true", help="fetch the Debian packages again")
    making.add_argument("--check", action="store_true", help="build nothing, report what would be built")
    making.add_argument("--json", action="store_true", help="print the results as JSON")
    making.set_defaults(run=_build)
    inside = commands.add_parser("assemble", help="make an image's layers inside a Containerfile's build stage")
    inside.add_argument("name", choices=NAMES)
    inside.add_argument("--root", type=Path, default=Path("/"))
    inside.add_argument("--output", type=Path, required=True)
    inside.set_defaults(run=_assemble)
    listing = commands.add_parser("packages", help="print the Debian packages of an image")
    listing.add_argument("name", choices=NAMES)
    listing.set_defaults(run=_packages)
    locking = commands.add_parser("lock", help="renew the lock file of the control plane's Python packages")
    locking.set_defaults(run=_lock)
    fetching = commands.add_parser("page-libraries", help="fetch the JavaScript libraries of the console page again")
    fetching.set_defaults(run=_fetch_libraries)
    return parser


def _build(chosen: argparse.Namespace) -> None:
    store = Store(cache_directory(), lambda text: print(f"images: {text}", file=sys.stderr, flush=True))
    mirrors = Mirrors(chosen.mirror, chosen.security_mirror)
    options = Options(chosen.prefix, chosen.tag, mirrors, chosen.fresh)
    make = plan if chosen.check else build
    built = []
    for name in chosen.only or NAMES:
        started = time.monotonic()
        image = make(name, store, chosen.output, options)
        built.append(image)
        if not chosen.json:
            print(_line(image, time.monotonic() - started), flush=True)
    if chosen.json:
        print(json.dumps([_described(image) for image in built]))


def _line(built: Built, seconds: float) -> str:
    image = built.image
    if not image.digest:
        return f"{image.reference}  would be written"
    state = f"written in {seconds:.1f} s" if built.written else "unchanged"
    return f"{image.reference}  {image.digest[:19]}  {image.path.stat().st_size / 2**20:.0f} MiB  {image.path}  {state}"


def _described(built: Built) -> dict[str, object]:
    image = built.image
    return {
        "name": built.name,
        "reference": image.reference,
        "digest": image.digest,
        "archive": str(image.path.resolve()),
        "built": built.written,
        "size_bytes": image.path.stat().st_size if image.digest else 0,
    }


def _assemble(chosen: argparse.Namespace) -> None:
    for path in assemble(chosen.name, chosen.root, chosen.output):
        print(path)


def _packages(chosen: argparse.Namespace) -> None:
    print("\n".join(parse_packages(packages_file(COLLECTION, chosen.name).read_text())))


def _lock(_unused: argparse.Namespace) -> None:
    lock(COLLECTION / "pyproject.toml", COLLECTION / "images/control-plane/requirements.txt")


def _fetch_libraries(_unused: argparse.Namespace) -> None:
    for library in fetch(COLLECTION / PAGE):
        print(f"{library.package} {library.version}  {library.sha256}")


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the requirements of this repository: distribution packages, .venv, the collections that this one uses.

Runs on the system's Python, before anything else is installed: standard library only, no imports from this repository.
A second run with nothing to do takes milliseconds. `lab build` builds the programs of the cluster. With --quickstart:
only what `make quickstart` needs, and the build begins while packages are installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
WHOLE_STAMP, PART_STAMP = VENV / ".pins", VENV / ".pins-quickstart"
PYTHON_FLOOR = (3, 11)
COLLECTIONS = ROOT / "requirements-collections.txt"
COLLECTION = "ansible_collections/kubernetes/core/"
"""The part of the pinned wheel that is used, including its licence."""

# program or header file that shows that a package is installed -> Debian's name of the package
QUICKSTART_PACKAGES = {
    "runc": "runc",
    "nft": "nftables",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "losetup": "mount",
    "nsenter": "util-linux",
}
PACKAGES = {
    **QUICKSTART_PACKAGES,
    "git": "git",
    "gcc": "gcc",
    "chromium": "chromium",
    "pkg-config": "pkg-config",
    "/usr/include/libvirt/libvirt.h": "libvirt-dev",
    f"{sysconfig.get_paths()['include']}/Python.h": "python3-dev",
}


QUICKSTART_REQUIREMENTS = ("ansible-core", "cryptography", "kubernetes", "setuptools")
"""The packages of requirements.txt that `make quickstart` needs: nothing is compiled for them."""


class BootstrapError(Exception):
    """A requirement is missing and cannot be installed. The text has the remedy."""


def missing_packages(packages: dict[str, str]) -> list[str]:
    """Return the distribution packages that are not installed."""
    absent = {package for proof, package in packages.items() if not _is_there(proof)}
    if subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True, check=False).returncode != 0:
        absent.add("python3-venv")
    return sorted(absent)


def _is_there(proof: str) -> bool:
    if proof.startswith("/"):
        return Path(proof).exists()
    return shutil.which(proof, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


def install_packages(packages: list[str]) -> None:
    """Install distribution packages. BootstrapError names them if this is not possible."""
    if not packages:
        return
    names = " ".join(packages)
    if shutil.which("apt-get") is None:
        raise BootstrapError(
            f"missing: {names} (Debian's names). Install their equivalents with this system's package manager, "
            "then run the command again"
        )
    if os.geteuid() != 0:
        raise BootstrapError(f"missing packages. Run as root: apt-get install {names}")
    say(f"installing packages: {names}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "-q"], environment)
    _run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages], environment)


def make_venv(*, is_whole: bool) -> None:
    """Create .venv, and create it again if the pins have changed. The rest is added to quickstart's part."""
    pins = hashlib.sha256(
        b"".join((ROOT / name).read_bytes() for name in ("pyproject.toml", "requirements.txt")) + sys.version.encode()
    ).hexdigest()
    whole, part = (stamp.exists() and stamp.read_text() == pins for stamp in (WHOLE_STAMP, PART_STAMP))
    if whole or (part and not is_whole):
        return
    say("making .venv (about a minute the first time)")
    pip = [str(VENV / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    requirements = str(ROOT / "requirements.txt")
    if VENV.is_symlink():
        raise BootstrapError(f"{VENV} is a link to an environment of other pins; remove the link, then run this again")
    if not part:
        _run([sys.executable, "-m", "venv", "--clear", str(VENV)])
        _run([*pip, "--constraint", requirements, *QUICKSTART_REQUIREMENTS])
        _run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
        PART_STAMP.write_text(pins)
    if is_whole:
        _run([*pip, "--requirement", requirements])
        WHOLE_STAMP.write_text(pins)


def start_build() -> subprocess.Popen[bytes]:
    """Start `lab build`, which needs none of the packages. It continues in the background: `lab up` waits for it."""
    return subprocess.Popen([sys.executable, "-m", "lab", "build"], cwd=ROOT, stdout=subprocess.DEVNULL)


def bring_collections() -> None:
    """Install the pinned collection into .venv, where its Ansible finds it, unless it is installed."""
    stamp = VENV / ".collections"
    pins = COLLECTIONS.read_text()
    if stamp.exists() and stamp.read_text() == pins:
        return
    say(f"bringing {COLLECTION} (some seconds)")
    with tempfile.TemporaryDirectory() as folder:
        pip = [str(VENV / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "download", "--no-deps", "--require-hashes", "--dest", folder, "--requirement", str(COLLECTIONS)])
        (wheel,) = Path(folder).glob("*.whl")
        take_collection(wheel, Path(sysconfig.get_path("purelib", vars={"base": str(VENV)})))
    stamp.write_text(pins)


def take_collection(wheel: Path, site_packages: Path) -> None:
    """Unpack the collection's folder from a wheel, and replace the existing folder."""
    shutil.rmtree(site_packages / COLLECTION, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.startswith(COLLECTION)]
        if not members:
            raise BootstrapError(f"{wheel.name} does not hold {COLLECTION}; see {COLLECTIONS.name}")
        archive.extractall(site_packages, members)


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a command. Show its output only if it fails."""
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise BootstrapError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")


def say(text: str) -> None:
    """Show progress."""
    print(f"bootstrap: {text}", flush=True)


def main(arguments: list[str]) -> int:
    """Install everything that the Makefile needs, or the part for --quickstart."""
    try:
        if sys.version_info < PYTHON_FLOOR:
            raise BootstrapError(
                f"Python {sys.version.split()[0]} is too old: {'.'.join(map(str, PYTHON_FLOOR))} or newer is needed. "
                "Name one with: make PYTHON=/path/to/python3"
            )
        is_whole = "--quickstart" not in arguments
        install_packages(missing_packages(PACKAGES if is_whole else QUICKSTART_PACKAGES))
        if not is_whole and not VENV.exists():
            start_build()
        make_venv(is_whole=is_whole)
        bring_collections()
    except BootstrapError as error:
        print(f"bootstrap: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

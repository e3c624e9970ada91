# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks, one session each; `nox` runs them all, first those that fail soonest. `nox -l` lists them.

Sessions use the environment of the Makefile (.venv): its pins are the project's pins.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import nox

from lab.collection import linked_under
from lab.paths import Cache

ROOT = Path(__file__).resolve().parent
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
os.environ["PYTHONPATH"] = f"{ROOT}:{ROOT / 'plugins/module_utils'}"
# Without bytecode each process compiles what it imports: a minute per pytest.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("MYPY_CACHE_DIR", str(Cache.from_environment().root / "mypy"))  # a fresh clone is warm, too

nox.options.default_venv_backend = "none"
SESSIONS = "texts unit mutation images component lab clusters"
TEXTS = "lint docs sanity galaxy"
"""Sessions of one thread each, the longest first."""
CLUSTERS = "e2e molecule"
"""Sessions that wait for labs half of their time."""
nox.options.sessions = SESSIONS.split()

PYTEST = ("python", "-m", "pytest", "-q", "--durations=10")
SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
"""Two files at a time, in the order of collection: their labs differ by name."""
SIMULATION = ("python", "-m", "tests.controlplane.simulation", "--workers", "2")
BY_DAY = "not nightly"
"""Excludes the tests of `make nightly`."""
OUTSIDE = "component or lab or guest or root"
"""Markers of the tests that need more than Python: root, a built lab, an image."""


def files_marked(*markers: str) -> list[str]:
    """Return the test files that use one of these markers: to collect all of tests/ takes half a minute."""
    use = re.compile(rf"mark\.({'|'.join(markers)})\b")
    return sorted(str(path) for path in Path("tests").rglob("test_*.py") if use.search(path.read_text()))


@nox.session
def texts(session: nox.Session) -> None:
    """Run the checks that only read files, two at a time."""
    session.run("python", "-m", "tests.two_at_a_time", *TEXTS.split())


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, types, import contracts, Ansible's and YAML's linters."""
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    shared = [f"plugins/module_utils/{name}" for name in ("kubevirt_api", "libvirt_domain", "seed_image")]
    session.run("mypy", "controlplane", *shared, "lab", "tests/bench", "tests/chaos")
    session.run("lint-imports")
    session.run("yamllint", "--strict", ".")
    ansible_lint(session, "--exclude", "extensions/molecule")  # Molecule runs them, and `nightly` lints them
    session.run("antsibull-changelog", "lint")
    session.run("python", "-m", "tests.sanity.changelog", "--check")


def ansible_lint(session: nox.Session, *arguments: str) -> None:
    """Run ansible-lint on this checkout as an installed collection."""
    with tempfile.TemporaryDirectory() as directory:
        session.run("ansible-lint", *arguments, env={"ANSIBLE_COLLECTIONS_PATH": str(linked_under(Path(directory)))})


@nox.session
def unit(session: nox.Session) -> None:
    """Unit, golden and story tests, and the simulation: no root, no cluster.

    All of tests/ is collected, so that a test that does not load fails here, in the first minute.
    """
    session.run(*PYTEST, "-n", "2", "-m", f"not ({OUTSIDE}) and {BY_DAY}", "tests", *session.posargs)


@nox.session
def mutation(session: nox.Session) -> None:
    """Run the mutants of lines that have changed since their file's score was recorded, for two minutes at most."""
    session.run("python", "-m", "tests.mutation", "changed", *session.posargs)


@nox.session
def sanity(session: nox.Session) -> None:
    """ansible-test sanity, without Docker: `nox -s sanity -- --ansible-core 2.18` for another version."""
    session.run("python", "-m", "tests.sanity.run_sanity", *session.posargs)


@nox.session
def sanity_all(session: nox.Session) -> None:
    """All of ansible-test sanity with every other supported ansible-core. Not in `make test`."""
    session.run("python", "-m", "tests.sanity.run_sanity", "--ansible-core", "all", *session.posargs)


@nox.session
def galaxy(session: nox.Session) -> None:
    """Build the tarball, check its contents, run Galaxy's importer."""
    session.run("python", "-m", "tests.sanity.importer")


@nox.session
def docs(session: nox.Session) -> None:
    """antsibull-docs: lint and render the documentation."""
    session.run("python", "-m", "tests.sanity.docsite", *session.posargs)


@nox.session
def images(session: nox.Session) -> None:
    """Build what the later sessions run on: the lab's binaries and the images. Quick when nothing changed."""
    session.run("lab", "build")
    session.run("python", "-m", "images", "build")


@nox.session
def component(session: nox.Session) -> None:
    """One process or image against the real thing it talks to: API server, network namespace, QEMU."""
    session.run(
        *PYTEST,
        *SIDE_BY_SIDE,
        "-m",
        f"(component or guest or root) and not lab and {BY_DAY}",
        *files_marked("component", "guest", "root"),
        *session.posargs,
    )


@nox.session
def lab(session: nox.Session) -> None:
    """The lab itself: times, faults, two labs in parallel, complete removal."""
    session.run(*PYTEST, *SIDE_BY_SIDE, "-m", f"lab and {BY_DAY}", "tests/lab", *session.posargs)


@nox.session
def clusters(session: nox.Session) -> None:
    """Run the checks on clusters at the same time: Molecule alone leaves a core idle."""
    session.run("python", "-m", "tests.two_at_a_time", *CLUSTERS.split())


@nox.session
def e2e(session: nox.Session) -> None:
    """End to end: guests that boot on a lab, faults, malformed VMs, budgets."""
    session.run(*PYTEST, *SIDE_BY_SIDE, "-m", f"lab and {BY_DAY}", "tests/e2e", *session.posargs)


@nox.session
def molecule(session: nox.Session) -> None:
    """Run Molecule's scenarios of the day, each twice."""
    session.run("python", "-m", "tests.molecule", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """Run the tests that are too long for `make test`, all Molecule scenarios, long simulations, all mutants."""
    ansible_lint(session)
    session.run(*PYTEST, *SIDE_BY_SIDE, "-m", "nightly", *files_marked("nightly"), *session.posargs)
    session.run("python", "-m", "tests.molecule", "--all")
    session.run(*SIMULATION, "--steps", "100000", "--seeds", "8")
    session.run(*SIMULATION, "--steps", "20000", "--seeds", "4", "--scenario", "migrations")
    session.run("python", "-m", "tests.mutation", "all")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks, one session each; `nox` runs them all, in the order that fails soonest. `nox -l` lists them.

Sessions use the environment of the Makefile (.venv): its pins are the project's pins.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "unit", "sanity", "images", "component", "lab", "e2e", "molecule"]

PYTEST = ("python", "-m", "pytest", "-q", "--durations=10")
UNIT_PATHS = ("tests/unit", "tests/controlplane", "tests/images", "tests/lab")
OUTSIDE = "component or lab or guest or root"
"""Markers of the tests that need more than Python: root, a built lab, an image."""


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, types, import contracts, Ansible's and YAML's linters."""
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy", "controlplane", "plugins/module_utils/kubevirt_api")
    session.run("lint-imports")
    session.run("yamllint", "--strict", ".")
    session.run(
        "ansible-lint",
        "--offline",
        "--profile",
        "production",
        env={"ANSIBLE_COLLECTIONS_PATH": "{here}/.cache/collections"},
    )
    session.run("antsibull-changelog", "lint")


@nox.session
def unit(session: nox.Session) -> None:
    """Unit, golden and story tests, and the simulation: no root, no cluster."""
    session.run(*PYTEST, "-n", "2", "-m", f"not ({OUTSIDE})", *UNIT_PATHS, *session.posargs)

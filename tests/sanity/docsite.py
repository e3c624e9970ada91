# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the collection's documentation and render it as docs.ansible.com does: python -m tests.sanity.docsite [FOLDER].

With a folder the HTML pages are kept in it. No network: pages of other projects are not linked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.collection import linked_under
from tests import environments

SETTINGS = """\
project = "virtops.kubevirt"
extensions = ["sphinx_antsibull_ext"]
html_theme = "basic"
exclude_patterns = []
"""
ELSEWHERE = """\
:orphan:

.. _ansible_configuration_settings:
.. _common_return_values:
.. _ansible_collections.kubernetes.core.k8s_module:

Pages of Ansible's own documentation
====================================
"""
"""Stands for the pages that ours point to and that are not here, so that any other broken pointer is an error."""
LIKE_A_LINK = 'Unknown target name: "antsibull-docs-'
"""What is wrong with every page when the random name of antsibull-docs' folder ends in _, as each 37th does."""
LINT = ("lint-collection-docs", "--plugin-docs", "--validate-collection-refs", "all", ".")
PAGES = ("collection", "--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir")


def main(arguments: list[str]) -> int:
    """Lint, write the pages' sources, render them; the exit code is that of the first step that fails."""
    programs = environments.make("docs") / "bin"
    with tempfile.TemporaryDirectory(prefix="virtops-docsite-") as scratch:
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(linked_under(Path(scratch) / "collections")),
            "PATH": f"{programs}:{os.environ['PATH']}",  # antsibull-docs calls ansible-doc
        }
        source, pages = Path(scratch) / "source", Path(*arguments) if arguments else Path(scratch) / "html"
        source.mkdir()
        (source / "conf.py").write_text(SETTINGS)
        (source / "elsewhere.rst").write_text(ELSEWHERE)
        for command in (
            ["antsibull-docs", *LINT],
            ["antsibull-docs", *PAGES, str(source), "virtops.kubevirt"],
            ["sphinx-build", "-W", "--keep-going", "-q", "-j", "auto", "-b", "html", str(source), str(pages)],
        ):
            failed = run(command, environment)
            if failed:
                print(f"{' '.join(command[:2])} failed", file=sys.stderr)
                return failed
    return 0


def run(command: list[str], environment: dict[str, str]) -> int:
    """Run a step and say what it says; return its exit code. Once more where a folder's name was the reason."""
    for tries_left in (2, 1, 0):
        done = subprocess.run(
            command,
            cwd=environments.ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode and tries_left and LIKE_A_LINK in done.stdout:
            continue
        sys.stdout.write(done.stdout)
        sys.stdout.flush()
        break
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes client of all plugins; knows nothing about virtual machines.

argspec     options                    endpoint    options to address and credentials (kubeconfig, kubeconfig_shape,
frame       the module around its work             exec_login)
api         calls on objects           transport   HTTP (deadline, failures, proxy); streams, websocket: endless answers
objects     checks of answers          refusals    errors of the API server
parallel    several calls at once      waiter      wait for objects
redact      hide secrets               errors      what all of them raise
shapes      shapes of option values    paths       URLs, and checks of names

This file imports nothing of ours. Ansible compiles the imported files of a task on each run, so what few tasks need is
a file of its own, imported where it is used. Python's own importer of zip files compiles a file twice: to tell its
name, and to run it. Payload avoids the first, which saves 20 ms per task.
"""

from __future__ import annotations

import sys
import zipimport


class Payload(zipimport.zipimporter):
    """The importer of the zip file that Ansible sends; tells the name of a file without compiling it."""

    def get_filename(self, fullname: str) -> str:
        """Return the path of a module's file, as the archive has it."""
        end = "/__init__.py" if self.is_package(fullname) else ".py"
        return f"{self.archive}/{self.prefix}{fullname.rpartition('.')[2]}{end}"


def compile_once() -> None:
    """Let Payload import what comes after this file, where this file came out of a zip file itself."""
    if isinstance(__spec__.loader, zipimport.zipimporter) and Payload not in sys.path_hooks:
        sys.path_hooks.insert(0, Payload)


compile_once()

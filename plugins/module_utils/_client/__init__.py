# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every plugin that meets a cluster shares; nothing about virtual machines.

argspec: options. frame: the module around its work. endpoint, kubeconfig: from options to an address and credentials
(exec_login: the only importer of the kubernetes library, for credential plugins). transport: HTTP; streams, websocket:
answers without an end; failures: why there is no answer. paths, api: the calls; refusals: what the API answers instead.
parallel: many of them. waiter: until objects are as they should be. redact: what is not shown. errors: what all of them
raise.

This file imports nothing of ours: a module's payload holds only what it reaches. Ansible compiles what a task imports
anew each time, so what only few tasks need is a file of its own that they import. What they do import is compiled once:
Python's own importer of zip files compiles a file to tell its name, and again to run it, which is 20 ms of a task.
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

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every plugin that meets a cluster shares; nothing about virtual machines.

argspec: options. frame: the module around its work. endpoint, kubeconfig: from options to an address and credentials
(exec_login: the only importer of the kubernetes library, for credential plugins). transport: HTTP; streams, websocket:
answers without an end; failures: why there is no answer. paths, api: the calls; refusals: what the API answers instead.
parallel: many of them. waiter: until objects are as they should be. redact: what is not shown. errors: what all of them
raise.

This file imports nothing: a module's payload holds only what it reaches. Ansible compiles what a task imports anew each
time, so what only few tasks need is a file of its own that they import.
"""

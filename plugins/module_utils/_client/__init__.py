# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server as the modules see it. Imports nothing: a module's payload holds only what it reaches.

argspec: options. endpoint, kubeconfig: from options to an address and credentials (exec_login: the only importer of
the kubernetes library, for credential plugins). transport: HTTP. paths, api: the calls. errors: what they raise.
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each kind of volume needs in the launcher Pod, in the launch plan and in the domain, one file per kind.

kind: the interface of such a file. registry: one row per kind, and the functions for other packages. The launcher
carries out the plan in controlplane.virt_launcher.disks.prepare, and does not import this package.
"""

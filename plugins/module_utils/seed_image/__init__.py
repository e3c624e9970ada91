# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk image from which cloud-init reads its configuration. Standard library only; this file imports nothing.

no_cloud: which files a NoCloud seed has. iso9660: writes them into an ISO 9660 image. Python 3.10 or later; no I/O.

The control plane imports this package under the name `seed_image` (docs/adr/0019-what-modules-can-import.md).
"""

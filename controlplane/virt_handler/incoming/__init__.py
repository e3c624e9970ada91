# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target's part in a migration: what a node does for an instance that is to come, until it is given to it.

world, decide, status: pure. reconciler: caches and launchers in, verbs and writes out. What it opens is a door of
controlplane.virt_handler.migration. From the commit on (docs/adr/0016) the instance is the business of vmi/, like any.
"""

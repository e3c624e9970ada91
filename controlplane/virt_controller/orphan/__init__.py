# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Orphans: the remains of a migration whose object was deleted before its end, because its finalizer was removed.

world, decide: pure. reconciler: reads the caches, writes. The key is a VMI. The package migration cleans up after
migrations that exist.
"""

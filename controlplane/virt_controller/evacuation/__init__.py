# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evacuation: an instance that is to leave its node gets a migration, again and again until it has left.

world: what a decision is based on. decide, status: pure. reconciler: caches in, writes out. The key is an instance.
Who marks it is virt-api (an eviction), or whoever taints its node; what becomes of the migration is migration/.
"""

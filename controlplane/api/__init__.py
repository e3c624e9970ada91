# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API as everybody sees it, in three rooms and a table. Pure: no I/O in here.

objects    what the objects are: typed views, one file or folder per kind
schema     what values may be: bounds, patterns, and the CRDs generated from the types
admission  whether a write may happen, and what it becomes: fields, defaults, rules, verdict
registry   one row per kind: its types, its rules, its CRD. All that is true of every kind goes through it

launch_plan stands beside them: what virt-controller and virt-launcher agree on is no object of the API.
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Typed views of Kubernetes objects, read leniently: one file, or one folder, per kind. No rules, no defaults.

vm, vmi/, kubevirt: ours. pod: a launcher Pod as far as it concerns us. meta, conditions, phase, readiness, quantity:
what kinds have in common. resources: names of kinds and keys of objects. decode: from JSON to types.
"""

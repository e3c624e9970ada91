# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules over several fields, by area: compute, storage, network, placement, metadata. All problems at once.

Every rule takes typed values and their path, and yields Problems. controlplane.api.schema.bounds limits single fields;
controlplane.api.admission.fields checks them. Start with `check`, for objects of any kind; `machine` has all rules of a
machine's spec.
"""

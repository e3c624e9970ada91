# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that need more than one field, by area: compute, storage, network, placement, metadata. All problems at once.

Every rule takes typed values and the path they sit at, and yields Problems. What a single field may hold is said in
controlplane.api.schema.bounds and checked by controlplane.api.admission.fields. `machine` is all of them for one
machine, `check` the front door for objects of any kind.
"""

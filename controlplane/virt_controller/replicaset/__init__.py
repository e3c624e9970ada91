# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstanceReplicaSet: keeps a number of VMIs of one template. Its members are VMIs; see members.

member: the view of a VMI. instance: manifests and names of VMIs. failures: back-off after VMIs that ended before they
ran.
"""

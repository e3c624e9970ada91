# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of a lab, control plane or node, and its kernel objects: namespaces, cgroups, links, loop devices.

Knows nothing of Kubernetes."""

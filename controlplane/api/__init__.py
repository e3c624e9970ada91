# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes API of the control plane. Pure: no I/O.

objects    typed views, one file or folder per kind
schema     limits of fields, and the CRDs generated from the types
admission  decides whether a write is allowed, and sets defaults
registry   one row per kind: its types, its rules, its CRD

launch_plan, pod_metadata, cpu_labels and vmi_label: formats that several processes share and that are no objects.
log_level: what several processes derive alike from the KubeVirt object.
"""

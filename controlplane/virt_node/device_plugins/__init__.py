# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's device plugin API (v1beta1) for kvm and tun: how an unprivileged launcher gets its devices.

device    which devices, and their device nodes      plugin  the gRPC service of one plugin
endpoint  a plugin's socket                          serve   registration, repeated when the kubelet drops it
wire      the API's messages as bytes
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's device plugin API (v1beta1) for kvm and tun: how a launcher gets its devices unprivileged.

wire     the few messages, as bytes        device   which devices, and their private nodes
plugin   one plugin's service              serve    registration, again whenever the kubelet has dropped it
endpoint its socket, and those that predecessors left
"""

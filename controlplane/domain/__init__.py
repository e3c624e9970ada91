# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launch means, for Pod, plan and libvirt: pure, no I/O in here.

model, codec, builders: the libvirt domain. volumes: what each kind of volume means. guest, network, mac, layout: what
controller, handler and launcher derive alike. namespace, state, observed: what is read back from libvirt.
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial console and screen of this node's guests, as streams to virt-api.

guest_sockets     finds the launcher, opens the device's socket, and says why a stream has ended; in the main loop
device            the connection to such a socket; in the endpoint's thread
sessions          one session for each device; a later one ends the former; in the endpoint's thread
"""

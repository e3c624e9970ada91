# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries a guest from one node to another. The decisions are in vmi/ (source) and incoming/ (target).

sender            the source's side: sends the guest through a tunnel_client
convergence       watches progress and timeouts, and stops the guest so that it can be sent
source_exit       detects that the guest has left the source
incoming_tunnels  the target's side: one tunnel_server for each migration
handshake         the first line of a connection
peer              certificates of both ends
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler and virt-node say to each other on a node, and how it is carried. Neither's own code is in here.

messages.py  every request and answer, as values with bounds
offer.py     what the node offers to launchers, as either end knows it
channel.py   one packet, one message, with the descriptors that go along

virt-node is root and holds no token; virt-handler holds the token and is nobody. Each takes the other for captured:
what does not decode, is too long or brings other descriptors than it should ends the connection.
"""

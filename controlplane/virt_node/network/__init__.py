# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher Pod's network: bridge, tap and address translation for its guest.

masquerade  the nftables rules (pure)   links  bridge, tap, addresses, sysctls
nft         libnftables in this process netns  runs both inside the Pod's network namespace

This process never reads guest packets: the launcher serves DHCP.
"""

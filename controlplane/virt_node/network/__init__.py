# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher Pod's network: bridge, tap and address translation for its guest.

masquerade  which rules (pure)      links   bridge, tap, addresses, sysctls
nft         libnftables in process  netns   running the above inside the Pod's namespace

Guest packets are never read by this process: DHCP is served by the launcher.
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The XML namespace of our element in a domain's metadata. A separate file, so its users need not import XML."""

from __future__ import annotations

PREFIX = "virtops"
NAMESPACE = "urn:virtops:kubevirt:1"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of this control plane, as the API reports it. A test compares it with the package's."""

from __future__ import annotations

VERSION = "0.1.0"

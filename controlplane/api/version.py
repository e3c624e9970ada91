# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions that the API reports: of this control plane, and of the KubeVirt that it is compatible with.

A test compares the first with the package's.
"""

from __future__ import annotations

VERSION = "0.1.0"
KUBEVIRT_VERSION = "v1.9.0"
"""What clients of KubeVirt compare their own version with."""

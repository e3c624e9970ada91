# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a VirtualMachine runs."""

from __future__ import annotations

ALWAYS = "Always"
HALTED = "Halted"
MANUAL = "Manual"
RERUN_ON_FAILURE = "RerunOnFailure"
ONCE = "Once"

BUILT = (ALWAYS, HALTED, MANUAL, RERUN_ON_FAILURE, ONCE)
"""What this version's control plane acts on."""

SELF_STARTING = (ALWAYS, RERUN_ON_FAILURE, ONCE)
"""With these a VirtualMachine that is created runs without being started."""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of spec.runStrategy of a VirtualMachine."""

from __future__ import annotations

ALWAYS = "Always"
HALTED = "Halted"
MANUAL = "Manual"
RERUN_ON_FAILURE = "RerunOnFailure"
ONCE = "Once"

BUILT = (ALWAYS, HALTED, MANUAL, RERUN_ON_FAILURE, ONCE)
"""The strategies that this version of the control plane supports."""

SELF_STARTING = (ALWAYS, RERUN_ON_FAILURE, ONCE)
"""With these strategies a new VirtualMachine runs without a start request."""

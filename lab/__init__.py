# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Kubernetes cluster with one or several nodes on one Linux machine, in seconds. See README.md.

`Lab` is the library, `python -m lab` the command. This package does not import the product."""

from lab.cluster.lab import Lab
from lab.errors import LabError

__all__ = ["Lab", "LabError"]

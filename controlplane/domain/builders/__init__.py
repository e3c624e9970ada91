# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policy: from a VMI and the facts of its launch to the model. Pure functions, one file per family of pieces.

`build_domain` in domain.py is the table of contents. Each default is chosen in one place: here, or by libvirt where
the model leaves a field out.
"""

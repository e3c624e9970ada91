# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's container images, and how they are made with or without a container engine.

Standard library only: the roles run `python3 -m images build` on machines that have nothing else. docs/images.md
has what is in each image; a folder per image has its Containerfile and its package list.
"""

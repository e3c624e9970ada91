# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's container images, and how to build them with or without a container engine.

Standard library only: the roles run `python3 -m images build` on machines without other packages. docs/images.md
describes the content of each image. A folder per image has its Containerfile and its package list.
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images on a node, for the role launcher_image; private to this collection.

image       what the modules do: choose the runtime, load or pull an image, remove one
containerd  crio: the runtimes, by their own programs
program     run a program: its output or one error; types a password at a prompt
records     the names and digests that a runtime has; pure
frame       arguments in, result or one error out
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images on a node, for the role launcher_image; private to this collection.

records   what a runtime has, and what of it goes with an image; pure
program   one program: its output, or one error; types a password
containerd  crio    the runtimes, by their own programs
image     what the modules do: choose the runtime, bring an image, remove one
frame     arguments in, result or one error out
"""

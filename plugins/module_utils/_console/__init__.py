# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The serial console and the screen of an instance, for modules kubevirt_console and kubevirt_screenshot.

console      opens the console, runs the steps, reads the captured log
dialogue     one step after the other: send, then wait for a pattern
screenshot   reads a PNG of the screen
dest_file    writes a file with Ansible's options for files
"""

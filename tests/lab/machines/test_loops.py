# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loop devices are identified by the inode of their file."""

from __future__ import annotations

from lab.machines.loops import on_files, parse_loops

LISTING = """{"loopdevices": [
  {"name": "/dev/loop1", "back-maj:min": "     254:0  ", "back-ino": 12},
  {"name": "/dev/loop0", "back-maj:min": "     254:0  ", "back-ino": 11},
  {"name": "/dev/loop7", "back-maj:min": "       8:1  ", "back-ino": 11}
]}"""


def test_the_kubelets_pin_is_detached_before_the_device_below_it() -> None:
    loops = parse_loops(LISTING)
    assert on_files(loops, {("254:0", 11)}, {("254:0", 12)}) == ["/dev/loop1", "/dev/loop0"]


def test_the_same_inode_of_another_file_system_does_not_match() -> None:
    assert on_files(parse_loops(LISTING), {("254:0", 99)}, set()) == []


def test_host_without_loop_devices_has_none() -> None:
    assert parse_loops("") == []

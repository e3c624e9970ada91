# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cgroup hierarchies in /proc/self/mountinfo."""

from __future__ import annotations

import os
from pathlib import Path

from lab.machines.cgroup import namespace_pids, parse_hierarchies

HYBRID = """\
30 23 0:26 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
34 30 0:27 / /elsewhere/cpu rw - cgroup cgroup rw,cpu
"""


def test_a_hybrid_host_has_both_versions() -> None:
    found = {each.path.name: each for each in parse_hierarchies(HYBRID)}
    assert set(found) == {"cpu,cpuacct", "systemd", "unified"}
    assert found["unified"].unified
    assert {"cpu", "cpuacct"} <= found["cpu,cpuacct"].options


def test_a_unified_host_has_one_hierarchy() -> None:
    (only,) = parse_hierarchies("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n")
    assert only.unified
    assert only.path == Path("/sys/fs/cgroup")


def test_namespace_pids_of_a_running_and_of_an_ended_process() -> None:
    assert namespace_pids(os.getpid())[0] == os.getpid()
    assert namespace_pids(2**22 + 1) == []

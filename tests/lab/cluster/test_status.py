# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of `lab status`."""

from __future__ import annotations

from lab.cluster.status import render_status

STATUS = {
    "name": "virtops",
    "server": "https://10.99.0.1:6443",
    "kubeconfig": "/k",
    "audit_log": "/a",
    "programs": {},
    "control_plane": {"state": "running", "pids": {"etcd": 7}},
    "nodes": [{"name": "node-1", "state": "cut", "ready": False, "pids": {"kubelet": 0}}],
}


def test_each_machine_has_a_line() -> None:
    assert render_status(STATUS).splitlines()[-2:] == [
        "cp       running  etcd=7",
        "node-1   cut  NotReady  kubelet=down",
    ]


def test_a_program_that_was_not_built_is_named() -> None:
    status = {**STATUS, "programs": {"kubelet": "/opt/kubelet (1.36.5)"}}
    assert "not built   kubelet from /opt/kubelet (1.36.5)" in render_status(status)
    assert "not built" not in render_status(STATUS)

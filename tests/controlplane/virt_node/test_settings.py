# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings from the environment."""

from __future__ import annotations

from pathlib import Path

from controlplane.virt_node.settings import read_settings


def test_nothing_is_needed() -> None:
    found = read_settings({})
    assert (found.pods_directory, found.log_level) == (Path("/var/lib/kubelet/pods"), "INFO")
    assert found.socket == Path("/run/virtops/node/virt-node.sock")


def test_paths_can_be_moved() -> None:
    assert read_settings({"KUBELET_PODS": "/elsewhere"}).pods_directory == Path("/elsewhere")

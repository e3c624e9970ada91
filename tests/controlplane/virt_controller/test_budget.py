# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of one VM start: at most eleven by all components. This test counts virt-controller's share."""

from __future__ import annotations

from tests.controlplane.stories.stage import Stage, Users, a_vm

HANDLER = 1
"""VMI status: Running, with interfaces and readiness."""
EVENTS = 2
"""SuccessfulCreate on the VM, Started on the VMI."""
WITHOUT_ADMISSION = 1
"""The VM's finalizer, which admission adds; the stage has no admission."""


def test_a_start_takes_no_more_than_eleven_writes() -> None:
    with Stage() as stage:
        Users(stage).create(a_vm())
    assert dict(stage.calls) == {
        "patch VirtualMachine": WITHOUT_ADMISSION,
        "create ControllerRevision": 1,
        "create VirtualMachineInstance": 1,
        "patch status of VirtualMachine": 2,
        "patch status of VirtualMachineInstance": 2,
        "create Pod": 1,
        "patch VirtualMachineInstance": 1,
    }
    assert stage.calls.total() - WITHOUT_ADMISSION + HANDLER + EVENTS <= 11
    assert stage.controller.recorded.reasons == ["SuccessfulCreate"]


def test_an_unchanged_vm_causes_no_writes() -> None:
    with Stage() as stage:
        Users(stage).create(a_vm())
        stage.calls.clear()
        stage.wait(3600)
    assert not stage.calls

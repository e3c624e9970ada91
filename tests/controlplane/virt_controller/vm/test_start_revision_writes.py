# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ControllerRevision of each start: written before the instance, and the former one deleted."""

from __future__ import annotations

import pytest

from controlplane.api.objects.resources import CONTROLLER_REVISION, Key
from controlplane.engine.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    WebhookFailed,
)
from tests.controlplane.virt_controller.vm.stage import VM, VMI, WEB, Json, Stage

CREATE, DELETE = "create ControllerRevision", "delete ControllerRevision [uid]"


def revisions(stage: Stage) -> dict[str, Json]:
    return {key.name: body for key, body in stage.store.list(CONTROLLER_REVISION)}


def name(stage: Stage, generation: int) -> str:
    return f"revision-start-vm-{stage.vm['metadata']['uid']}-{generation}"


async def start(stage: Stage) -> None:
    """Start the machine, and let the VMI controller name the revision."""
    await stage.run()
    named = name(stage, stage.vm["metadata"]["generation"])
    stage.patch_vmi({"phase": "Running", "virtualMachineRevisionName": named})
    await stage.come_to_rest()
    assert stage.vm["status"]["startRevisionName"] == named
    stage.calls.clear()


def end_run(stage: Stage) -> None:
    stage.store.delete(VMI, WEB)
    stage.finalize_vmi()
    stage.catch_up()


def change(stage: Stage) -> None:
    """Change the template."""
    stage.store.patch(VM, WEB, {"spec": {"template": {"spec": {"hostname": "another"}}}})
    stage.catch_up()


async def test_a_start_records_the_spec_as_stored_before_the_instance() -> None:
    stage = Stage(novelty=True)
    await stage.run()
    (written,) = revisions(stage).values()
    assert written["metadata"]["name"] == name(stage, 1)
    assert written["data"] == {"spec": stage.vm["spec"]}
    assert stage.writes()[:2] == [CREATE, "create VirtualMachineInstance"]


async def test_the_next_start_of_another_spec_deletes_the_former_revision() -> None:
    stage = Stage()
    await start(stage)
    change(stage)
    end_run(stage)
    await stage.come_to_rest()
    assert list(revisions(stage)) == [name(stage, 2)]
    assert DELETE in stage.writes()


async def test_the_next_start_of_the_same_spec_keeps_the_revision() -> None:
    stage = Stage()
    await start(stage)
    before = revisions(stage)
    end_run(stage)
    await stage.come_to_rest()
    assert revisions(stage) == before
    assert DELETE not in stage.writes()


async def test_a_revision_of_another_owner_stays() -> None:
    """An adopted instance names the revision of its former VM."""
    stage = Stage()
    await start(stage)
    stage.store.patch(CONTROLLER_REVISION, Key("default", name(stage, 1)), {"metadata": {"ownerReferences": None}})
    change(stage)
    end_run(stage)
    await stage.come_to_rest()
    assert set(revisions(stage)) == {name(stage, 1), name(stage, 2)}


@pytest.mark.parametrize("call", ["get ControllerRevision", "delete ControllerRevision"])
async def test_a_start_waits_until_the_former_revision_is_deleted(call: str) -> None:
    """Otherwise nobody would delete it before its machine."""
    stage = Stage()
    await start(stage)
    change(stage)
    end_run(stage)
    stage.direct.refusals[call] = Unavailable("no answer")
    await stage.run()
    assert stage.store.find(VMI, WEB) is None
    assert list(revisions(stage)) == [name(stage, 1)], "none for a start that another one may replace"
    del stage.direct.refusals[call]
    await stage.come_to_rest()
    assert list(revisions(stage)) == [name(stage, 2)]
    assert stage.store.find(VMI, WEB) is not None


async def test_a_former_revision_that_is_gone_is_no_error() -> None:
    stage = Stage()
    await start(stage)
    stage.store.delete(CONTROLLER_REVISION, Key("default", name(stage, 1)))
    change(stage)
    end_run(stage)
    assert (await stage.run()).error is None


REFUSALS = [error("refused") for error in (Conflict, Forbidden, Invalid, NotFound, Throttled, WebhookFailed)]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
async def test_a_start_whose_instance_is_refused_leaves_no_revision(error: ApiError) -> None:
    """A user who changes the spec again and again, beyond a quota, would leave a revision of each."""
    stage = Stage()
    stage.direct.refusals["create VirtualMachineInstance"] = error
    for _repeatedly in range(2):
        assert (await stage.run()).error is error
        assert revisions(stage) == {}
        change(stage)
    del stage.direct.refusals["create VirtualMachineInstance"]
    await stage.come_to_rest()
    assert list(revisions(stage)) == [name(stage, stage.vm["metadata"]["generation"])]


async def test_a_start_with_an_unknown_result_keeps_its_revision() -> None:
    """The instance may exist."""
    stage = Stage()
    stage.direct.refusals["create VirtualMachineInstance"] = Unavailable("no answer")
    await stage.run()
    assert list(revisions(stage)) == [name(stage, 1)]


async def test_a_refused_instance_keeps_the_revision_of_an_earlier_pass() -> None:
    """Its instance may exist: the result of that pass may be unknown."""
    stage = Stage()
    for error in (Unavailable("no answer"), Forbidden("exceeded quota")):
        stage.direct.refusals["create VirtualMachineInstance"] = error
        await stage.run()
    assert list(revisions(stage)) == [name(stage, 1)]


async def test_the_refusal_of_an_instance_is_reported_although_its_revision_stays() -> None:
    stage = Stage()
    stage.direct.refusals["create VirtualMachineInstance"] = Forbidden("exceeded quota")
    stage.direct.refusals["delete ControllerRevision"] = Unavailable("no answer")
    await stage.run()
    failure = stage.condition("Failure")
    assert failure is not None
    assert "exceeded quota" in failure["message"]


async def test_a_start_whose_revision_is_refused_says_so() -> None:
    stage = Stage()
    stage.direct.refusals[CREATE] = Forbidden("cannot create ControllerRevision default/x: exceeded quota")
    await stage.run()
    failure = stage.condition("Failure")
    assert failure is not None
    assert (failure["reason"], "ControllerRevision default/x: exceeded quota" in failure["message"]) == (
        "FailedCreate",
        True,
    )
    assert stage.store.find(VMI, WEB) is None

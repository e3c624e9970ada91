# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to a guest, in each of its states."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write import guest_power
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write.power import Impossible


def a_vmi(*conditions: str, phase: str = "Running", deleting: bool = False, **status: Any) -> dict[str, Any]:
    listed = [{"type": kind, "status": "True"} for kind in conditions]
    metadata = {"uid": "u", **({"deletionTimestamp": "t"} if deleting else {})}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": listed, **status}}


RUNS, PAUSED, WITH_AGENT = a_vmi("Ready"), a_vmi("Paused"), a_vmi("Ready", "AgentConnected")
FROZEN = a_vmi("Ready", "AgentConnected", fsFreezeStatus="frozen")


@pytest.mark.parametrize(
    ("state", "vmi", "asked"),
    [
        pytest.param("paused", RUNS, "pause", id="pause"),
        pytest.param("paused", PAUSED, None, id="paused already"),
        pytest.param("unpaused", PAUSED, "unpause", id="unpause"),
        pytest.param("unpaused", RUNS, None, id="runs already"),
        pytest.param("reset", RUNS, "reset", id="reset"),
        pytest.param("reset", PAUSED, "reset", id="reset a paused one"),
        pytest.param("softrebooted", RUNS, "softreboot", id="soft reboot"),
        pytest.param("frozen", WITH_AGENT, "freeze", id="freeze"),
        pytest.param("frozen", FROZEN, None, id="frozen already"),
        pytest.param("unfrozen", FROZEN, "unfreeze", id="thaw"),
        pytest.param("unfrozen", WITH_AGENT, None, id="not frozen"),
    ],
)
def test_only_necessary_requests_are_sent(state: str, vmi: dict[str, Any], asked: str | None) -> None:
    ask = guest_power.decide(state, vmi, 300)
    assert (ask.subresource if ask else None) == asked
    assert ask is None or ask.of_instance


@pytest.mark.parametrize(
    ("state", "vmi", "words"),
    [
        pytest.param("paused", None, "does not run; start it first", id="no instance"),
        pytest.param("paused", a_vmi(phase="Failed"), r"run is over \(Failed\)", id="over"),
        pytest.param("reset", a_vmi(deleting=True), "is being stopped", id="leaving"),
        pytest.param("paused", a_vmi(phase="Scheduling"), "is Scheduling, not Running; wait", id="not there yet"),
        pytest.param("paused", a_vmi(phase=""), "not yet seen by virt-controller", id="nobody looked"),
        pytest.param("softrebooted", PAUSED, "is paused .* unpause it first", id="a paused guest cannot reboot itself"),
        pytest.param("frozen", RUNS, "takes a guest agent", id="no agent"),
    ],
)
def test_an_impossible_request_is_refused_with_a_remedy(state: str, vmi: dict[str, Any] | None, words: str) -> None:
    with pytest.raises(Impossible, match=words):
        guest_power.decide(state, vmi, 300)


@pytest.mark.parametrize("vmi", [None, a_vmi(deleting=True), a_vmi(phase="Scheduling")])
def test_the_remedy_is_a_valid_option(vmi: dict[str, Any] | None) -> None:
    """An instance without a VM is not started: it runs from its creation."""
    with pytest.raises(Impossible, match=r"first \(state=started, with wait=true\)"):
        guest_power.decide("paused", vmi, 300)
    with pytest.raises(Impossible, match=r"kubevirt_vmi with state=present, or kubevirt_vm with state=started where"):
        guest_power.decide("paused", vmi, 300, of_vm=False)


@pytest.mark.parametrize(("given", "sent"), [(300, "300s"), (0, "0s")])
def test_a_freeze_has_a_timeout(given: int, sent: str) -> None:
    """Upstream refuses a freeze without one."""
    ask = guest_power.decide("frozen", WITH_AGENT, given)
    assert ask is not None
    assert ask.body == {"unfreezeTimeout": sent}


@pytest.mark.parametrize("state", ["reset", "softrebooted", "frozen", "unfrozen"])
def test_subresources_without_dry_run_are_listed(state: str) -> None:
    ask = guest_power.decide(state, FROZEN if state == "unfrozen" else WITH_AGENT, 300)
    assert ask is not None
    assert not ask.has_dry_run

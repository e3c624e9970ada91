# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger on histories that leave open whether a run must exist."""

from __future__ import annotations

import pytest

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.ledger import Account, Ledger
from tests.support.store import Change, Json


def an_instance(phase: str) -> Json:
    return {"metadata": {"uid": "of the instance", "name": "web"}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("must_run", "then"),
    [
        pytest.param(True, False, id="it was stopped"),
        pytest.param(None, None, id="adopted after a restart was accepted: the start may be still to come"),
    ],
)
def test_the_end_of_a_run_to_be_stopped_settles_only_the_known_part(must_run: bool | None, then: bool | None) -> None:
    one = Account("RerunOnFailure", must_run=must_run, owed_stop="of the instance")
    before, after = an_instance("Running"), an_instance("Failed")
    Ledger._end(one, Change(1, VIRTUAL_MACHINE_INSTANCE, Key("default", "web"), before, after, b"", "controller"))
    assert one.must_run is then

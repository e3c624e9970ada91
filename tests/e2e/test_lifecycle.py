# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ends of runs and the run strategy: real guests that shut down, are killed, or refuse to shut down.

All machines start in parallel. test_guest_ends.py has the ends that take longer.
"""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.ends import delete, event_message
from tests.e2e.machines import a_vm, with_grace

pytestmark = pytest.mark.lab

GOES = "#!/bin/sh\npoweroff -f\n"
DEAF = "#!/bin/sh\nrm -r /etc/acpi\n"
IS_DEAF = "user-data exited with 0"


@pytest.fixture(scope="module", autouse=True)
def machines(cluster: Cluster) -> None:
    """Create every machine of this module at once."""
    cluster.apply(
        a_vm("launcherless", runStrategy="RerunOnFailure"),
        with_grace(a_vm("deaf", user_data=DEAF, runStrategy="Once"), 5),
    )


def test_a_run_whose_launcher_is_killed_fails_with_an_event_and_is_restarted(cluster: Cluster) -> None:
    uid = cluster.running("launcherless")["metadata"]["uid"]

    assert cluster.kill("virt-launcher", cluster.launcher("launcherless")["metadata"]["uid"]) > 0

    cluster.another("launcherless", uid)
    assert "137" in event_message(cluster, uid, "Warning", "Stopped")
    assert uid not in cluster.emulators()
    delete(cluster, "launcherless")


def test_a_guest_that_ignores_the_power_button_is_ended_after_its_grace_period(cluster: Cluster) -> None:
    uid = cluster.running("deaf")["metadata"]["uid"]
    with cluster.console(cluster.launcher("deaf")["metadata"]["name"]) as console:
        console.expect(IS_DEAF)

    cluster.kubectl("delete", "vm", "deaf", "--wait=false")

    cluster.wait_gone("vmi", "deaf")
    assert "did not shut down within its grace period" in event_message(cluster, uid, "Warning", "Stopped")
    ends = [
        (why, message) for _unused, why, message in cluster.events(uid) if why in ("ShuttingDown", "Deleted", "Stopped")
    ]
    # virt-handler counts from its shutdown request, the launcher from the deletion of its Pod: either may be first.
    assert [why for why, _unused in ends if why != "Deleted"] == ["ShuttingDown", "Stopped"]
    assert [message for why, message in ends if why == "Deleted"] in (
        [],
        ["Signaled Deletion: its grace period is over"],
    )

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from controlplane.api.objects.lease import Renewal
from controlplane.virt_controller.node.lease_observations import LeaseObservations

FIRST, SECOND = Renewal("u", "pod", "1"), Renewal("u", "pod", "2")


def test_a_first_observation_starts_at_zero() -> None:
    """Whatever renew time is in the Lease: a new leader has observed no silence yet."""
    lease_observations = LeaseObservations()
    lease_observations.begin()

    assert lease_observations.observe("n", FIRST, 100.0) == 0.0
    assert lease_observations.observe("n", FIRST, 130.0) == 30.0


def test_each_renewal_restarts_the_time() -> None:
    lease_observations = LeaseObservations()
    lease_observations.begin()
    for second, renewal in enumerate((FIRST, SECOND, None, SECOND)):
        assert lease_observations.observe("n", renewal, float(second)) == 0.0

    assert lease_observations.observe("n", SECOND, 10.0) == 7.0


def test_each_node_has_its_own_time() -> None:
    lease_observations = LeaseObservations()
    lease_observations.begin()
    lease_observations.observe("a", FIRST, 0.0)

    assert lease_observations.observe("b", FIRST, 50.0) == 0.0
    assert lease_observations.observe("a", FIRST, 50.0) == 50.0
    lease_observations.forget("a")
    assert lease_observations.observe("a", FIRST, 60.0) == 0.0


def test_observations_of_a_follower_do_not_count() -> None:
    lease_observations = LeaseObservations()
    lease_observations.observe("n", FIRST, 0.0)
    assert lease_observations.observe("n", FIRST, 1000.0) == 0.0
    lease_observations.forget("n")

    lease_observations.begin()

    assert lease_observations.observe("n", FIRST, 1000.0) == 0.0
    assert lease_observations.observe("n", FIRST, 1001.0) == 1.0


def test_a_new_term_starts_at_zero() -> None:
    lease_observations = LeaseObservations()
    for start in (0.0, 1000.0):
        lease_observations.begin()
        assert lease_observations.observe("n", FIRST, start) == 0.0
        assert lease_observations.observe("n", FIRST, start + 1) == 1.0

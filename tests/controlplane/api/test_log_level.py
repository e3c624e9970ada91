# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What logVerbosity means for each component."""

from __future__ import annotations

import pytest

from controlplane.api.log_level import Component, configured_level
from controlplane.api.objects.kubevirt import LogVerbosity

CONFIGURED = LogVerbosity(
    virt_api=1, virt_controller=2, virt_handler=3, virt_launcher=9, node_verbosity={"n1": 4, "n2": 0}
)


@pytest.mark.parametrize(
    ("component", "node", "level"),
    [
        ("virt-api", "", "INFO"),
        ("virt-controller", "n3", "INFO"),
        ("virt-handler", "n3", "DEBUG"),
        ("virt-launcher", "", "DEBUG"),
        ("virt-api", "n1", "DEBUG"),
        ("virt-api", "n2", "INFO"),
    ],
)
def test_three_and_more_are_details_and_a_node_has_its_own(component: Component, node: str, level: str) -> None:
    assert configured_level(CONFIGURED, component, node) == level


def test_without_a_verbosity_the_deployed_level_stays() -> None:
    assert configured_level(LogVerbosity(), "virt-handler", "n1") is None

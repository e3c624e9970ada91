# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Version strings of the programs in a cluster."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.versions import release


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("v1.36.3", "1.36.3", id="Kubernetes"),
        pytest.param("v1.36.3-eks-0a1b2c", "1.36.3", id="a provider's"),
        pytest.param("v1.36.3+k3s1", "1.36.3", id="a distribution's"),
        pytest.param("2.3.7", "2.3.7", id="a runtime's"),
        pytest.param("v1.37.0-beta.1", "1.37.0", id="one that comes"),
        pytest.param("unknown", None, id="none"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_the_release_is_parsed_from_a_version_string(text: str, expected: str | None) -> None:
    assert release(text) == expected

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.builders.facts import NotBuildableError
from controlplane.domain.builders.interface import build_interfaces
from tests.controlplane.domain.builders.vmis import KVM, a_vmi


def test_the_error_for_an_interface_without_a_tap_names_it() -> None:
    vmi = a_vmi(devices={"interfaces": [{"name": "default", "masquerade": {}}]})
    with pytest.raises(NotBuildableError, match=r"interfaces\[0\]: the Pod has no tap for interface 'default'"):
        build_interfaces(vmi, KVM)

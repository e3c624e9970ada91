# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template as it was stored."""

from __future__ import annotations

import pytest

from controlplane.virt_controller.vm.template import stored_template, template_hash

STORED = b'{"domain":{"memory":{"guest":"64Mi"}},"nodeSelector":{"zone":"a"}}'


def test_the_template_is_cut_out_of_the_vm_unchanged() -> None:
    vm = b'{"kind":"VirtualMachine","spec":{"running":true,"template":{"metadata":{"labels":null},"spec":' + STORED
    assert stored_template(vm + b'}},"status":{}}') == STORED


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (b'{"nodeSelector":{"zone":"a"},"domain":{"memory":{"guest":"64Mi"}}}', True),
        (b'{ "domain": {"memory": {"guest": "64Mi"}},\n"nodeSelector": {"zone": "a"} }', True),
        (b'{"domain":{"memory":{"guest":"64Mi"},"cpu":null},"nodeSelector":{"zone":"a"},"affinity":null}', True),
        (b'{"domain": {"memory": {"guest": "64Mi"}, "cpu": null}, "nodeSelector": {"zone": "a"}}', True),
        (b'{"domain":{"memory":{"guest":"65Mi"}},"nodeSelector":{"zone":"a"}}', False),
        (b'{"domain":{"memory":{"guest":"64Mi"}}}', False),
        (b'{"domain":{"memory":{"guest":"64Mi"}},"nodeSelector":{"zone":"a"},"unheardOf":1}', False),
    ],
    ids=[
        "another order",
        "other spacing",
        "nulls",
        "nulls and other spacing",
        "another value",
        "a field less",
        "a field we do not know",
    ],
)
def test_equal_templates_have_equal_hashes(other: bytes, is_same: bool) -> None:
    assert (template_hash(other) == template_hash(STORED)) is is_same


def test_the_hash_stays_the_same_between_versions() -> None:
    """It is stored on running instances: another algorithm would require a restart of every machine."""
    assert template_hash(STORED) == "f8265d6c3e166e3a6dec138d4ec9beed"

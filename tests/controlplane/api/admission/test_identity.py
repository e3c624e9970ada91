# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import pytest

from controlplane.api.admission import defaults
from controlplane.api.admission.identity import KEPT, keep_identity
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from tests.controlplane.api import golden

MACHINES = [name for name in golden.NAMES if name.startswith("vm-")]
Json = dict[str, Any]


def made(name: str) -> Json:
    return defaults.default_vm(golden.load(name), KubeVirtConfiguration(machine_type="q35"), "seed")


@pytest.mark.parametrize("name", MACHINES)
def test_a_replace_keeps_the_identity(name: str) -> None:
    """Defaults may have changed since: a new default machine type does not apply to an old machine."""
    kept = keep_identity(golden.load(name), made(name))

    assert defaults.default_vm(kept, KubeVirtConfiguration(machine_type="pc"), None)["spec"] == made(name)["spec"]


@pytest.mark.parametrize("path", KEPT, ids=".".join)
def test_a_value_from_the_user_wins(path: tuple[str, ...]) -> None:
    field = "/".join(("spec/template/spec", *path))
    new = golden.changed(made("vm-full"), field, "mine")

    assert keep_identity(new, made("vm-full")) is new


@pytest.mark.parametrize("path", KEPT, ids=".".join)
@pytest.mark.parametrize("empty", ["", None, ...], ids=["empty", "null", "missing"])
def test_empty_values_are_not_kept(path: tuple[str, ...], empty: Any) -> None:
    old = made("vm-full")
    new = golden.changed(old, "/".join(("spec/template/spec", *path)), empty)
    before = copy.deepcopy(new)

    assert keep_identity(new, old) == old
    assert new == before, "what was given is not changed"


@pytest.mark.parametrize(
    "old",
    [{}, {"spec": None}, {"spec": {"template": {"spec": {"domain": []}}}}, {"spec": {"template": {"spec": "x"}}}],
    ids=repr,
)
def test_an_old_object_of_any_shape_does_not_raise(old: Json) -> None:
    new = golden.load("vm-full")

    assert keep_identity(new, old) is new


def test_values_that_are_no_strings_are_not_kept() -> None:
    new = golden.load("vm-default-disks")
    old = golden.changed(made("vm-default-disks"), "spec/template/spec/domain/firmware", {"uuid": 7, "serial": ["x"]})

    assert "firmware" not in keep_identity(new, old)["spec"]["template"]["spec"]["domain"]

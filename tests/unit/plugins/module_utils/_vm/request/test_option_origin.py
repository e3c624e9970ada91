# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a refused field back to the option that set it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import Invalid
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import option_origin
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request.vm_request import request_of
from ansible_collections.virtops.kubevirt.plugins.module_utils.kubevirt_api.names import RUN_TIMEOUT

BODY = {
    "spec": {
        "template": {
            "spec": {
                "domain": {
                    "devices": {"disks": [{"name": "cloudinit"}, {"name": "own"}], "interfaces": [{"name": "pods"}]}
                },
                "networks": [{"name": "pods"}],
                "volumes": [{"name": "own"}, {"name": "containerdisk"}, {"name": "cloudinit"}, {"name": "theirs"}],
            }
        }
    }
}
VOLUMES = "spec.template.spec.volumes"
DEVICES = "spec.template.spec.domain.devices"
PLAIN = ("cloud_init", "image", "memory", "spec", "eviction_strategy", "run_timeout", "instancetype")
GIVEN = {
    **dict.fromkeys(PLAIN, frozenset[str]()),
    **dict.fromkeys(("volumes", "disks"), frozenset({"own"})),
    **dict.fromkeys(("networks", "interfaces"), frozenset({"pods"})),
}
"""Options, with the names of their entries."""


@pytest.mark.parametrize(
    ("field", "option"),
    [
        pytest.param(f"{VOLUMES}[2].cloudInitConfigDrive", "cloud_init", id="seed"),
        pytest.param(f"{VOLUMES}[2].cloudInitNoCloud.userData", "cloud_init.user_data", id="user data"),
        pytest.param(f"{VOLUMES}[2].cloudInitNoCloud.networkData", "cloud_init.network_data", id="network data"),
        pytest.param(f"{VOLUMES}[0].cloudInitNoCloud.userData", "volumes (own)", id="user data of a volume"),
        pytest.param(f"{VOLUMES}[1].containerDisk.image", "image", id="image"),
        pytest.param(f"{DEVICES}.disks[0].disk.bus", "cloud_init", id="its disk"),
        pytest.param(f"{VOLUMES}[0].emptyDisk", "volumes (own)", id="a volume"),
        pytest.param(f"{DEVICES}.disks[1].disk.bus", "disks (own)", id="a disk"),
        pytest.param(f"{DEVICES}.interfaces[0].model", "interfaces (pods)", id="an interface"),
        pytest.param("spec.template.spec.networks[0].multus", "networks (pods)", id="a network"),
        pytest.param("spec.template.spec.domain.memory.guest", "memory", id="memory"),
        pytest.param("spec.template.spec.evictionStrategy", "eviction_strategy", id="a field"),
        pytest.param(f"spec.template.metadata.annotations[{RUN_TIMEOUT}]", "run_timeout", id="an annotation"),
        pytest.param("spec.instancetype.name", "instancetype", id="a mapping"),
        pytest.param("spec.template.spec.hostname", None, id="a field without an option"),
        pytest.param("spec.template.spec.domain.cpu.cores", None, id="an option that was not given"),
        pytest.param(f"{VOLUMES}[3].emptyDisk", None, id="a volume that no option names"),
        pytest.param(f"{VOLUMES}[9]", None, id="a volume that is not there"),
        pytest.param("?", None, id="no field"),
    ],
)
def test_a_refused_field_has_an_option(field: str, option: str | None) -> None:
    assert option_origin.option_of(field, GIVEN, BODY) == option


def test_an_explicit_option_comes_before_the_one_that_generates_such_a_volume() -> None:
    given = {**GIVEN, "volumes": frozenset({"cloudinit"})}

    assert option_origin.option_of(f"{VOLUMES}[2].emptyDisk", given, BODY) == "volumes (cloudinit)"


def test_a_refused_name_is_shown_with_the_other_names_of_its_list() -> None:
    """A misspelt name adds an item instead of changing one."""
    request = request_of({"name": "web", "namespace": "default", "disks": [{"name": "own", "cache": "none"}]})
    refused: list[dict[str, Any]] = [{"field": f"{DEVICES}.disks[1].name", "message": "no volume is called own"}]
    error = option_origin.with_options(Invalid("no", status=422, causes=refused), request, BODY)
    assert error.message == f"no ({DEVICES}.disks[1].name comes from the option disks (own), next to cloudinit)"


def test_data_that_is_too_long_is_refused_with_the_option_that_names_a_secret() -> None:
    data = {"user_data": "#cloud-config\n" * 200}
    request = request_of({"name": "web", "namespace": "default", "image": "a", "memory": "1Gi", "cloud_init": data})
    field = f"{VOLUMES}[2].cloudInitNoCloud.userData"
    refused = [{"field": field, "message": "has 2800 bytes, at most 2048 are allowed inline"}]
    error = option_origin.with_options(Invalid("too long", status=422, causes=refused), request, BODY)
    assert error.message == (
        f"too long ({field} comes from the option cloud_init.user_data; a Secret is named by"
        " cloud_init.user_data_secret)"
    )

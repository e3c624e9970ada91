# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role refuses every configuration that admission would refuse, before it changes anything.

Both judge the same values around each limit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.filter._misused import misused

from controlplane.api.admission.verdict import Request, Settings, review

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
OPTIONS = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__control_plane_options"]
VALUES: dict[str, tuple[Any, ...]] = {
    "image_pull_policy": ("Never", "never"),
    "console_origins": (
        *([], ["https://api.example.com:6443", "http://[fd00::1]"], ["https://api.example.com/"], ["*"], [{}]),
    ),
    "cpu_allocation_ratio": (0, 1, 1000, 1001),
    "container_disk_limit": (
        *("1023Ki", "1Mi", "1.5Gi", "64Ti", "65Ti", "65536Gi", "70T", "71T", "1048576", "1048575"),
        *("64K", "0", "1e9Gi", "-1Gi", "5m", "large"),
    ),
    "further_attempts": (-1, 0, 10, 11),
    "run_timeout": (0, 86400, 86401),
    "quarantine": (-1, 0, 86400, 86401),
    "workload_update_methods": (
        *(["LiveMigrate"], ["Evict", "LiveMigrate"], ["Migrate"], ["LiveMigrate", "Evict", "Evict"], [{}]),
    ),
    "workload_eviction_size": (-1, 0, 1000, 1001),
    "workload_eviction_interval": ("0s", "24h", "23h60m", "24h1s", "48h", "1d", "90", "1m30s", "1500ms", "-1s"),
}


def is_admitted(options: dict[str, Any]) -> bool:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True)
    environment.filters["bool"] = lambda value: str(value).lower() == "true"
    environment.filters["to_json"] = environment.filters["tojson"]
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    defaults["control_plane_console_origins"] = []  # by default from the cluster
    text = environment.from_string((ROLE / "templates/kubevirt.yaml.j2").read_text()).render(defaults | options)
    request = Request(operation="CREATE", kind="KubeVirt", user="admin", uid="1", obj=yaml.safe_load(text))
    return review(request, Settings()).allowed


@pytest.mark.parametrize(("name", "value"), [(name, item) for name, values in VALUES.items() for item in values])
def test_values_that_admission_refuses_are_refused_first(name: str, value: object) -> None:
    option = f"control_plane_{name}"
    context = jinja2.Environment(autoescape=True).from_string("").new_context({option: value})
    methods = {} if "methods" in name else {"control_plane_workload_update_methods": ["Evict"]}

    assert (misused(context, OPTIONS) == []) is is_admitted({**methods, option: value})

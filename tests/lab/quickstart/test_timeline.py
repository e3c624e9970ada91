# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the time of a start went."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.quickstart.timeline import Sources, stages


def stamp(second: float) -> str:
    return f"2026-01-01T00:00:{second:09.6f}Z"


def event(at: float, who: str, verb: str, resource: str, name: str = "web") -> dict[str, Any]:
    plural, _unused, sub = resource.partition("/")
    where = {"resource": plural, "namespace": "shop", "name": name, **({"subresource": sub} if sub else {})}
    return {
        "user": {"username": who},
        "verb": verb,
        "objectRef": where,
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": stamp(at - 0.01),
        "stageTimestamp": stamp(at),
    }


CONTROLLER = "system:serviceaccount:kubevirt:kubevirt-controller"
HANDLER = "system:serviceaccount:kubevirt:kubevirt-handler"
AUDIT = (
    event(1.01, "admin", "create", "virtualmachines"),
    event(1.10, CONTROLLER, "create", "virtualmachineinstances"),
    event(1.15, CONTROLLER, "create", "pods", "launcher-1"),
    event(1.20, "system:kube-scheduler", "create", "pods/binding", "launcher-1"),
    event(2.50, HANDLER, "patch", "virtualmachineinstances/status"),
)
SOURCES = Sources(
    audit=AUDIT,
    pod="launcher-1",
    launcher_log=(
        f'{stamp(1.8)} {{"event":"prepared"}}',
        f"{stamp(4.2)} virtops-guest: ready host=web",
    ),
    handler_log=(
        f'{{"time":"{stamp(1.9)}","event":"launcher connected","key":"shop/web"}}',
        f'{{"time":"{stamp(2.4)}","event":"domain started","key":"shop/web"}}',
    ),
    container_log=(
        f'time="{stamp(1.6)}" level=info msg="RunPodSandbox for name:\\"launcher-1\\"  uid:\\"u\\" returns sandbox id"',
    ),
)


def test_every_moment_is_found_in_order() -> None:
    timeline = stages(SOURCES, "shop", "web")

    assert [(stage.name, round(stage.at, 2)) for stage in timeline.stages] == [
        ("request answered (admission in it)", 0.01),
        ("VMI created", 0.1),
        ("Pod created", 0.15),
        ("Pod scheduled", 0.2),
        ("sandbox ready", 0.6),
        ("launcher's first line", 0.8),
        ("disks prepared", 0.8),
        ("libvirtd up, connected", 0.9),
        ("domain created", 1.4),
        ("phase Running", 1.5),
        ("guest's marker on its console", 3.2),
    ]


def test_a_restart_is_counted_from_the_new_instance() -> None:
    """No request of a user came before it."""
    again = event(9.0, CONTROLLER, "create", "virtualmachineinstances")
    timeline = stages(replace(SOURCES, audit=(*AUDIT, again), launcher_log=(), handler_log=()), "shop", "web")

    assert "VMI created" in [stage.name for stage in timeline.stages]


def test_a_source_without_a_trace_leaves_its_moment_out() -> None:
    timeline = stages(replace(SOURCES, container_log=()), "shop", "web")

    assert "sandbox ready" not in [stage.name for stage in timeline.stages]


def test_the_table_has_a_mark_for_each_tenth_of_a_second() -> None:
    (row,) = [row for row in stages(SOURCES, "shop", "web").table().splitlines() if "guest's marker" in row]

    assert row.endswith("#" * 17)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a start."""

from __future__ import annotations

from dataclasses import replace

from lab.quickstart.audit import Audit, Entry, seconds
from lab.quickstart.timeline import Sources, stages


def stamp(second: float) -> str:
    return f"2026-01-01T00:00:{second:09.6f}Z"


def entry(at: float, who: str, verb: str, resource: str, name: str = "web") -> Entry:
    answered = seconds(stamp(at))
    return Entry(
        user=who,
        verb=verb,
        resource=resource,
        namespace="shop",
        name=name,
        code=201,
        received=answered - 0.01,
        answered=answered,
    )


CONTROLLER = "system:serviceaccount:kubevirt:kubevirt-controller"
HANDLER = "system:serviceaccount:kubevirt:kubevirt-handler"
ENTRIES = (
    entry(1.01, "admin", "create", "virtualmachines"),
    entry(1.10, CONTROLLER, "create", "virtualmachineinstances"),
    entry(1.15, CONTROLLER, "create", "pods", "launcher-1"),
    entry(1.20, "system:kube-scheduler", "create", "pods/binding", "launcher-1"),
    entry(2.50, HANDLER, "patch", "virtualmachineinstances/status"),
)
SOURCES = Sources(
    audit=Audit(ENTRIES),
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


def test_all_moments_are_in_order() -> None:
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


def test_a_restart_begins_with_the_new_instance() -> None:
    """A restart by the controller has no earlier request."""
    again = entry(9.0, CONTROLLER, "create", "virtualmachineinstances")
    timeline = stages(replace(SOURCES, audit=Audit((*ENTRIES, again)), launcher_log=(), handler_log=()), "shop", "web")

    assert "VMI created" in [stage.name for stage in timeline.stages]


def test_a_moment_without_a_trace_is_omitted() -> None:
    timeline = stages(replace(SOURCES, container_log=()), "shop", "web")

    assert "sandbox ready" not in [stage.name for stage in timeline.stages]


def test_the_bar_has_a_mark_for_each_tenth_of_a_second() -> None:
    (row,) = [row for row in stages(SOURCES, "shop", "web").table().splitlines() if "guest's marker" in row]

    assert row.endswith("#" * 17)


def test_a_start_without_its_request_begins_with_the_instance() -> None:
    timeline = stages(replace(SOURCES, audit=Audit(ENTRIES[1:])), "shop", "web")

    first, *_unused = timeline.stages
    assert (first.name, round(first.at, 2)) == ("VMI created", 0.01)


def test_log_lines_without_a_time_are_skipped() -> None:
    cut = replace(
        SOURCES,
        launcher_log=("its beginning was lost", *SOURCES.launcher_log),
        handler_log=('"event":"domain started","key":"shop/web"', *SOURCES.handler_log),
    )

    assert stages(cut, "shop", "web") == stages(SOURCES, "shop", "web")


def test_the_table_reports_unreadable_entries() -> None:
    table = stages(replace(SOURCES, audit=Audit(ENTRIES, skipped=3)), "shop", "web").table()

    assert table.splitlines()[-1].strip() == "3 entries of the audit log could not be read and were skipped"
    assert "could not be read" not in stages(SOURCES, "shop", "web").table()


def test_the_table_reports_a_start_without_a_trace() -> None:
    assert "the audit log no longer has it" in stages(replace(SOURCES, audit=Audit()), "shop", "web").table()

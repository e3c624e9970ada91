# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error of a wait shows the last lines of the guest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import last_lines
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import FORBIDDEN, World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}
AGENT = {"type": "AgentConnected"}
PRINTED = b"booting\n\x1b[31mpanic\n\n"
IN_VAIN = {"wait": True, "wait_timeout": 1}


def log(text: bytes) -> Callable[[str, str], bytes | None]:
    """Return a World.mischief that serves the log of each Pod."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n\r\n".encode()
    return lambda _method, path: head + text if "/log?" in path else None


def launch(world: World, name: str = "web", state: str = "running") -> None:
    """Add the launcher Pod of an instance."""
    uid = world.objects["virtualmachineinstances", "default", name]["metadata"]["uid"]
    metadata = {"name": f"launcher-{name}", "namespace": "default", "labels": {"kubevirt.io/created-by": uid}}
    statuses = [{"name": "compute", "state": {state: {"reason": "ErrImagePull"}}}]
    spec = {"containers": [{"name": "compute"}]}
    world.put("pods", {"metadata": metadata, "spec": spec, "status": {"containerStatuses": statuses}})


@pytest.fixture
def failed(world: World, task: Task) -> Callable[..., VirtError]:
    """Run a task whose wait fails, on machines with launchers; return its error."""

    def run(*names: str, state: str = "running", printed: bytes = PRINTED, **options: Any) -> VirtError:
        machines: dict[str, Any] = {"vms": [{"name": name} for name in names]} if len(names) > 1 else {"name": names[0]}
        task(**machines, **MACHINE)
        for name in names:
            launch(world, name, state)
        world.mischief = world.mischief or log(printed)
        with pytest.raises(VirtError) as caught:
            task(**machines, wait_condition=AGENT, **IN_VAIN, **MACHINE, **options)
        return caught.value

    return run


def test_the_last_lines_are_in_the_message_and_in_the_result(failed: Callable[..., VirtError]) -> None:
    error = failed("web")

    assert error.facts["console"] == ["booting", "panic"]
    assert "AgentConnected" in error.message
    assert error.message.endswith("; the last lines on its console:\nbooting\npanic")


def test_of_several_machines_each_result_has_its_own(failed: Callable[..., VirtError]) -> None:
    error = failed("web", "db")

    assert [result["console"] for result in error.facts["results"]] == [["booting", "panic"]] * 2
    assert "booting" not in error.message


def test_of_a_set_they_are_those_of_the_member_that_the_reason_names(world: World, of_sets: Task) -> None:
    of_sets(replicas=1, labels={"app": "web"}, **MACHINE)
    world.unschedulable = "no node"
    owner = world.objects["virtualmachineinstancereplicasets", "default", "web"]["metadata"]
    metadata = {"name": "web-1", "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]}
    world.put("virtualmachineinstances", {"metadata": metadata, "spec": {}, "status": {"phase": "Running"}})
    launch(world, "web-1")
    world.mischief = log(PRINTED)

    with pytest.raises(VirtError) as caught:
        of_sets(replicas=2, **IN_VAIN)

    assert caught.value.facts["console"] == ["booting", "panic"]
    assert "web-1: " in caught.value.message


@pytest.mark.parametrize(
    ("state", "printed"),
    [pytest.param("waiting", PRINTED, id="no guest has run"), pytest.param("running", b"\n", id="it printed nothing")],
)
def test_without_lines_nothing_is_said(failed: Callable[..., VirtError], state: str, printed: bytes) -> None:
    error = failed("web", state=state, printed=printed)

    assert "console" not in error.facts
    assert "console" not in error.message


def test_without_the_right_to_read_logs_nothing_is_said(world: World, failed: Callable[..., VirtError]) -> None:
    world.mischief = lambda _method, path: FORBIDDEN if "/log?" in path else None

    error = failed("web")

    assert "AgentConnected" in error.message
    assert "console" not in error.facts


def test_a_task_that_is_not_logged_reads_no_console(world: World, failed: Callable[..., VirtError]) -> None:
    error = failed("web", shows_console=False)

    assert "console" not in error.facts
    assert [path for _method, path in world.requests if "/log?" in path] == []


def test_no_log_is_read_after_the_time_for_all(
    world: World, failed: Callable[..., VirtError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_lines, "SECONDS", 0)

    assert "console" not in failed("web").facts
    assert [path for _method, path in world.requests if "/log?" in path] == []


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([], []),
        (["", " "], []),
        (["", "a", "", "b", ""], ["a", "", "b"]),
        (["x" * 5000, "y"], ["x" * (last_lines.CHARACTERS - 2), "y"]),
    ],
)
def test_the_newest_characters_are_shown(lines: list[str], shown: list[str]) -> None:
    assert last_lines.newest(lines) == shown

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from controlplane.virt_launcher.probes.agent_exec import (
    ResponseError,
    query_status,
    read_started,
    read_status,
    start_command,
)


def returned(**fields: object) -> str:
    return json.dumps({"return": fields})


def test_a_command_runs_without_a_shell_and_without_its_output() -> None:
    assert json.loads(start_command(("/bin/test", "-e", "a b;\u2620"))) == {
        "execute": "guest-exec",
        "arguments": {"path": "/bin/test", "arg": ["-e", "a b;\u2620"], "capture-output": False},
    }
    assert json.loads(query_status(7)) == {"execute": "guest-exec-status", "arguments": {"pid": 7}}


def test_a_started_command_has_a_process_id() -> None:
    assert read_started(returned(pid=1234)) == 1234


@pytest.mark.parametrize(
    ("answer", "exit_code"),
    [
        pytest.param(returned(exited=True, exitcode=0), 0, id="well"),
        pytest.param(returned(exited=True, exitcode=3), 3, id="badly"),
        pytest.param(returned(exited=True, signal=9), 137, id="by a signal"),
        pytest.param(returned(exited=False), None, id="not yet"),
        pytest.param(returned(), None, id="no fields"),
        pytest.param(returned(exited=1), None, id="1 is not true"),
    ],
)
def test_the_exit_code_of_a_command_is_read(answer: str, exit_code: int | None) -> None:
    ended = read_status(answer)

    assert (ended and ended.exit_code) == exit_code


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{",
        "[]",
        "null",
        '{"return": []}',
        '{"return": {"pid": "1"}}',
        '{"return": {"pid": true}}',
        '{"return": {"pid": -1}}',
        '{"return": {"pid": 1e3}}',
        '{"return": {"pid": 4294967296}}',
        '{"return": {"exited": true}}',
        '{"return": {"exited": true, "signal": {}}}',
        "[" * 4000,
        '{"return": {"pid": ' + "9" * 4050 + "}}",
        '{"return": {"pid": 1}}' + " " * 5000,
        "\ud800",
    ],
)
def test_an_invalid_answer_is_an_error(answer: str) -> None:
    if "exited" not in answer:
        with pytest.raises(ResponseError):
            read_started(answer)
    else:
        with pytest.raises(ResponseError):
            read_status(answer)

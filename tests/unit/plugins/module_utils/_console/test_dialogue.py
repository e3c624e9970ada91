# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A dialogue with a guest whose responses the test lists."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut, VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket_frames import Closed
from ansible_collections.virtops.kubevirt.plugins.module_utils._console.dialogue import Dialogue, Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import transcript

Output = list[bytes | Exception]


class Guest:
    """Prints its outputs one after the other, then nothing."""

    def __init__(self, *outputs: bytes | Exception) -> None:
        self.outputs = list(outputs)
        self.received: list[bytes] = []

    def send(self, data: bytes, _deadline: float) -> None:
        self.received.append(data)

    def receive(self, _deadline: float) -> bytes:
        output = self.outputs.pop(0) if self.outputs else TimeoutError()
        if isinstance(output, Exception):
            raise output
        return output


def talk(guest: Guest, *options: dict[str, Any]) -> tuple[Dialogue, list[dict[str, Any]]]:
    dialogue = Dialogue(guest, "VirtualMachineInstance default/web")
    return dialogue, dialogue.run([Step(number, step) for number, step in enumerate(options)])


def test_a_login_matches_each_prompt_and_returns_groups() -> None:
    guest = Guest(b"\r\nweb lo", b"gin: ", b"root\r\nPassword: ", b"\r\n# ", b"cat x\r\n0.42 1\r\n# ")
    dialogue, matches = talk(
        guest,
        {"send": "", "expect": r"(\w+) login: $"},
        {"send": "root", "expect": "Password: $"},
        {"send_secret": "geheim", "expect": "# $"},
        {"send": "cat x", "expect": r"^([0-9.]+) "},
        {"send": "\x03", "enter": False},
    )
    assert guest.received == [b"\n", b"root\n", b"geheim\n", b"cat x\n", b"\x03"]
    assert [match.get("groups") for match in matches] == [["web"], [], [], ["0.42"], None]
    assert dialogue.text == "\nweb login: root\nPassword: \n# cat x\n0.42 1\n# "


def test_output_after_a_match_is_matched_by_the_next_step() -> None:
    _unused, matches = talk(Guest(b"one two three"), {"expect": "one"}, {"expect": "t[a-z]+"}, {"expect": "t[a-z]+"})
    assert [match["match"] for match in matches] == ["one", "two", "three"]


def test_an_escape_sequence_in_two_parts_is_removed() -> None:
    _unused, matches = talk(Guest(b"one\x1b[", b"6ntwo"), {"expect": "one"}, {"expect": "^.*two"})
    assert [match["match"] for match in matches] == ["one", "two"]


def test_output_from_before_a_send_is_not_matched_again() -> None:
    with pytest.raises(TimedOut):
        talk(Guest(b"# old # "), {"expect": "old"}, {"send": "x", "expect": "#"})


def test_a_pattern_that_does_not_come_names_step_and_last_lines() -> None:
    with pytest.raises(TimedOut) as failed:
        talk(Guest(b"panic\r\n"), {"send": "x"}, {"expect": "login:", "timeout": 5})
    message = failed.value.message
    assert "VirtualMachineInstance default/web did not print 'login:' within 5 s (steps[1])" in message
    assert message.endswith("panic")
    assert failed.value.facts == {"transcript": "panic\n", "step": 1}
    with pytest.raises(TimedOut, match="it printed nothing"):
        talk(Guest(), {"expect": "login:"})


@pytest.mark.parametrize(
    ("closed", "shown"),
    [
        (Closed(4001, "taken over by joe"), "taken over by joe; run the task again when the other session is over ("),
        (Closed(4002, "the guest moved to node n: connect again"), "the guest moved to node n; run the task again ("),
        (Closed(4005, "it was replaced"), "it was replaced; run the task again, with the new instance ("),
        (Closed(1011, "the connection broke"), "the connection broke; run the task again ("),
        (Closed(1000, "the guest has stopped"), "the guest has stopped ("),
    ],
)
def test_a_stream_that_ends_says_why_and_what_to_do_in_a_play(closed: Closed, shown: str) -> None:
    with pytest.raises(VirtError) as failed:
        talk(Guest(b"a", closed), {"expect": "login:"})
    assert f"ended before step 0 was done: {shown}" in failed.value.message


def test_a_timeout_says_why_the_guest_is_silent() -> None:
    dialogue = Dialogue(Guest(b"a"), "VirtualMachineInstance default/web", find_reason=lambda: "it is paused")
    with pytest.raises(TimedOut, match=r"within 60 s; it is paused \(steps\[0\]\); its last lines:\na"):
        dialogue.run([Step(0, {"expect": "login:"})])


@pytest.mark.parametrize(
    ("steps", "is_said"),
    [
        ([{"expect": "never"}], True),
        ([{"expect": "end$"}, {"expect": "never"}], False),
        ([{"expect": "end$"}, {"send": "x", "expect": "never"}], False),
    ],
    ids=["searched", "matched since", "sent since"],
)
def test_a_timeout_says_when_output_was_dropped_before_it_matched(steps: list[dict[str, Any]], is_said: bool) -> None:
    with pytest.raises(TimedOut) as failed:
        talk(Guest(b"begin", b"x" * transcript.LIMIT, b"end"), *steps)
    assert ("in its last 64 KiB; what it printed before them was dropped" in failed.value.message) == is_said


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({}, "does nothing"),
        ({"expect": "("}, "steps[0].expect '(' is no regular expression"),
        ({"expect": "x", "timeout": 0}, "steps[0].timeout is 0; give 1 or more seconds"),
        ({"send": "x", "timeout": -5}, "steps[0].timeout is -5; give 1 or more seconds"),
    ],
)
def test_a_step_that_cannot_be_run_is_refused(step: dict[str, Any], text: str) -> None:
    with pytest.raises(BadArgument) as refused:
        Step(0, step)
    assert text in refused.value.message


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m\r\n", "red\n"),
        (b"\x1b]0;title\x07a\tb\x00\x7f", "a\tb"),
        (b"\x1b[6n\x1b(B\x1b=x", "x"),
        ("gr\u00fcn \u202eevil".encode(), "gr\u00fcn evil"),
        (b"\xff", "\ufffd"),
    ],
)
def test_the_transcript_is_harmless_text(printed: bytes, text: str) -> None:
    assert transcript.printable(printed) == text


def test_a_flood_is_bounded() -> None:
    dialogue, _unused = talk(Guest(*[b"x" * 40000] * 5, b"end"), {"expect": "end"})
    assert len(dialogue.text) == transcript.LIMIT


def test_a_pattern_that_takes_for_ever_with_what_the_guest_prints_ends_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut, match="within 1 s"):
        talk(Guest(b"a" * 60 + b"!"), {"expect": "(a+)+$", "timeout": 1})
    assert time.monotonic() - began < 10


def test_a_guest_that_takes_nothing_is_told_from_one_that_prints_nothing() -> None:
    class Stuck(Guest):
        def send(self, data: bytes, _deadline: float) -> None:
            raise TimeoutError

    with pytest.raises(TimedOut, match="did not take what was sent within 60 s"):
        talk(Stuck(), {"send": "x"})

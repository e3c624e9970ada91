# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages between virt-api and virt-handler: read back unchanged, or refused."""

from __future__ import annotations

import pytest

from controlplane.domain.screenshot import PNG_LIMIT_BYTES, PNG_SIGNATURE
from controlplane.links.handler import (
    ANSWER_LIMIT_BYTES,
    Answer,
    Done,
    Guest,
    LinkError,
    NotDone,
    Picture,
    Power,
    bounded_text,
    encode,
    read_answer,
    read_picture,
    read_question,
    server_name,
)


def test_a_question_is_read_back_unchanged() -> None:
    question = Power(Guest("node-1", "vmi", "pod"), "reset")
    assert read_question(encode(question)) == question


@pytest.mark.parametrize("answer", [Done(), NotDone("busy", "later")])
def test_an_answer_is_read_back_unchanged(answer: Answer) -> None:
    assert read_answer(encode(answer)) == answer


def test_a_too_long_answer_is_refused() -> None:
    with pytest.raises(LinkError, match="more than"):
        read_answer(b'{"type":"Done"}' + b" " * ANSWER_LIMIT_BYTES)


def test_a_picture_is_a_png_of_limited_size() -> None:
    assert read_picture(PNG_SIGNATURE) == Picture(PNG_SIGNATURE)
    for data in (b"", b"GIF89a", PNG_SIGNATURE + bytes(PNG_LIMIT_BYTES)):
        with pytest.raises(LinkError, match="not a PNG"):
            read_picture(data)


@pytest.mark.parametrize("node", ["node-1", "10.0.0.7", "n" * 253])
def test_every_node_has_its_own_host_name(node: str) -> None:
    name = server_name(node)
    assert len(name) < 64
    assert name != server_name(node[:-1])


def test_a_text_is_cut_to_the_limit_of_an_answer() -> None:
    assert bounded_text("short") == "short"
    assert read_answer(encode(NotDone("lost", bounded_text("x" * 5000))))

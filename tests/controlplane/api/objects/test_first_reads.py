# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoders are built before threads use them: building one in two threads at once crashes the process."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from controlplane.api import decoders
from tests.controlplane.api.objects.first_reads import DECODERS


class _Unread(msgspec.Struct):
    """A type without a decoder."""


@pytest.mark.parametrize("decoder", DECODERS)
def test_threads_that_decode_the_first_objects_of_a_type_at_once_all_succeed(decoder: str) -> None:
    module = "tests.controlplane.api.objects.first_reads"

    ended = subprocess.run([sys.executable, "-m", module, decoder], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_two_threads_build_the_decoder_of_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    beside: list[bool] = []
    monkeypatch.setattr(decoders.inspect, "type_info", lambda _kind: beside.append(decoders._lock.locked()))
    monkeypatch.setattr(decoders.msgspec.json, "Decoder", lambda _kind: beside.append(decoders._lock.locked()))

    decoders.inspect_type(_Unread)
    decoders.decoder(_Unread)

    assert beside == [True, True]

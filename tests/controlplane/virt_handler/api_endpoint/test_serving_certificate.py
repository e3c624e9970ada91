# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key pair of this process: its validity, and a child process that fails to make one. Serving: test_server."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from controlplane.virt_handler.api_endpoint import serving_certificate as certificate_module
from controlplane.virt_handler.api_endpoint.serving_certificate import PairError, SelfSignedPair, make_self_signed_pair
from tests.controlplane.virt_handler.builders import NODE


class Child:
    """A process that prints this text and exits with this code. Without text it never exits."""

    def __init__(self, printed: bytes, returncode: int) -> None:
        self.is_killed = False
        self.returncode = returncode
        self._printed = printed

    async def communicate(self) -> tuple[bytes, None]:
        if not self._printed:
            await asyncio.Event().wait()
        return self._printed, None

    def kill(self) -> None:
        self.is_killed = True


def let_child_be(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    async def create(*_unused: Any, **__: Any) -> Child:
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create)


async def test_the_output_of_a_failed_child_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n"
    let_child_be(Child(printed, -9), monkeypatch)
    with pytest.raises(PairError, match="exit code -9"):
        await make_self_signed_pair(NODE)


async def test_a_child_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child(b"", 0)
    let_child_be(child, monkeypatch)
    monkeypatch.setattr(certificate_module, "MAKE_SECONDS", 0.01)
    with pytest.raises(PairError, match="created within"):
        await make_self_signed_pair(NODE)
    assert child.is_killed


def test_a_key_pair_fits_an_annotation_and_does_not_show_its_key(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    certificate_module.main("n" * 253, "peer")
    certificate, end, key = capsysbinary.readouterr().out.partition(b"-----END CERTIFICATE-----\n")
    pair = SelfSignedPair(certificate + end, key)
    assert "PRIVATE" not in repr(pair)
    assert len(base64.b64encode(pair.der)) <= 1024

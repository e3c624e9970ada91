# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The KVM probe is a separate program, which may print anything or nothing."""

from __future__ import annotations

import asyncio
import signal
from asyncio import create_subprocess_exec
from pathlib import Path
from typing import Any

import pytest

from controlplane.virt_node.kvm import KvmFinding, probe, read_answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"usable": true, "reason": ""}', KvmFinding(is_usable=True)),
        (b'{"usable": false, "reason": "KVM_RUN hangs"}', KvmFinding(is_usable=False, reason="KVM_RUN hangs")),
        (b'{"usable": "yes"}', KvmFinding(is_usable=False)),
        (b"", KvmFinding(is_usable=False, reason="the output of the KVM probe is not readable")),
        (b"[]", KvmFinding(is_usable=False, reason="the output of the KVM probe is not readable")),
        (b"{}", KvmFinding(is_usable=False, reason="the output of the KVM probe is not readable")),
    ],
    ids=["usable", "not usable", "not a boolean", "nothing", "a list", "an empty object"],
)
def test_only_a_true_boolean_means_usable(answer: bytes, expected: KvmFinding) -> None:
    assert read_answer(answer) == expected


async def test_the_probe_is_run_with_its_own_deadline(tmp_path: Path) -> None:
    program = tmp_path / "probe.py"
    program.write_text('import json, sys; print(json.dumps({"usable": True, "reason": " ".join(sys.argv[1:])}))')
    assert await probe(str(program)) == KvmFinding(is_usable=True, reason="--deadline 10")


async def test_a_hanging_probe_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[asyncio.subprocess.Process] = []

    async def begin(*words: str, **options: Any) -> asyncio.subprocess.Process:
        begun.append(await create_subprocess_exec(*words, **options))
        return begun[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begin)
    program = tmp_path / "probe.py"
    program.write_text("import signal; signal.pause()")
    finding = await probe(str(program), deadline_seconds=0.3)
    assert not finding.is_usable
    assert "did not end within 0.3 s" in finding.reason
    async with asyncio.timeout(5):
        assert await begun[0].wait() == -signal.SIGKILL

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests whether this node can run a virtual CPU. A separate program does it, because KVM may hang its process.

A guest may hang even if /dev/kvm exists and can be opened. The program runs a few instructions on a virtual CPU and
prints one JSON object: {"usable": bool, "reason": text, ...}.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import suppress

from controlplane.links.node.messages import KvmFinding

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 15.0
_OUTPUT_BYTES = 65536


async def probe(program: str, deadline_seconds: float = DEADLINE_SECONDS) -> KvmFinding:
    """Run the probe. Any failure means that KVM is not usable, with the failure as the reason."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            program,
            "--deadline",
            f"{deadline_seconds - 5:g}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        return KvmFinding(is_usable=False, reason=f"the KVM probe cannot be run: {error}")
    try:
        async with asyncio.timeout(deadline_seconds):
            output, _unused = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        # With a timeout: a process that hangs in KVM may survive the kill.
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await process.communicate()
        return KvmFinding(is_usable=False, reason=f"the KVM probe did not end within {deadline_seconds:g} s")
    return read_answer(output[:_OUTPUT_BYTES])


def read_answer(answer: bytes) -> KvmFinding:
    """Parse the probe's output."""
    try:
        result = json.loads(answer)
        return KvmFinding(is_usable=result["usable"] is True, reason=str(result.get("reason", ""))[:256])
    except (ValueError, KeyError, TypeError, AttributeError):
        return KvmFinding(is_usable=False, reason="the output of the KVM probe is not readable")

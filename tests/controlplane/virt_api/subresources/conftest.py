# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-api and a virt-handler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from tests.controlplane.virt_api.subresources.stage import Stage, opened


@pytest.fixture
async def stage(tmp_path: Path, pair: SelfSignedPair) -> AsyncIterator[Stage]:
    async with opened(Stage, tmp_path, pair) as stage:
        yield stage

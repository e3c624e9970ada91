# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event loop of virt-api, and the key pair of a virt-handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair, make_self_signed_pair


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run the tests of virt-api on its event loop."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def pair() -> SelfSignedPair:
    return asyncio.run(make_self_signed_pair("node-1"))

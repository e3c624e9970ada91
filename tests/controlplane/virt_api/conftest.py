# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key pair of a virt-handler."""

from __future__ import annotations

import asyncio

import pytest

from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair, make_self_signed_pair


@pytest.fixture(scope="session")
def pair() -> SelfSignedPair:
    return asyncio.run(make_self_signed_pair("node-1"))

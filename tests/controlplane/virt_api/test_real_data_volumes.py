# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upstream's example with a DataVolume, on a real API server without and with CDI's CRD."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controlplane.api.objects.resources import CUSTOM_RESOURCE_DEFINITION, VIRTUAL_MACHINE, Key
from controlplane.engine.errors import Invalid
from controlplane.kube.client import Client
from controlplane.kube.transport import Request
from tests.controlplane.api.admission.validate.test_data_volumes import alpine
from tests.controlplane.virt_api import test_real_api
from tests.controlplane.virt_api.test_real_api import Installed, a_client
from tests.controlplane.virt_controller.test_real_data_volumes import CRD, DEFINITION

pytestmark = pytest.mark.component
installed = test_real_api.installed

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.kubeconfig) as connected:
        yield connected


async def answer(client: Client) -> str:
    """Create upstream's example as a dry run. Return the error or "accepted"."""
    try:
        await client.create(VIRTUAL_MACHINE, "default", alpine(), dry_run=True)
    except Invalid as error:
        return str(error)
    return "accepted"


async def wait_for(client: Client, words: str) -> str:
    """Repeat until the answer contains these words: virt-api watches the CRD."""
    async with asyncio.timeout(20):
        while words not in (text := await answer(client)):
            continue
    return text


async def test_upstreams_example_is_refused_without_cdi_and_accepted_with_it(client: Client) -> None:
    text = await answer(client)
    assert "spec.dataVolumeTemplates" in text
    assert "spec.template.spec.volumes[0].dataVolume" in text
    assert "install CDI, or use a persistentVolumeClaim" in text

    body: dict[str, Any] = CRD
    await client.transport.send(Request("POST", PATH, "create a definition", json.dumps(body).encode()))
    await wait_for(client, "accepted")
    definition = await client.get(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION))
    await client.delete(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION), uid=definition["metadata"]["uid"])
    await wait_for(client, "install CDI")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry point of virt-controller: settings, signals, exit codes. The process itself is in process.py."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time

from controlplane.engine.clock import SystemClock
from controlplane.kube.client import Client
from controlplane.kube.credentials import CredentialsError, load
from controlplane.kube.transport import Transport
from controlplane.process import logs
from controlplane.process.descriptors import raise_descriptor_limit
from controlplane.process.signals import run_until_signal
from controlplane.virt_controller.process import COMPONENT, Process
from controlplane.virt_controller.settings import Settings, SettingsError, read_settings

log = logging.getLogger(__name__)


async def _serve(settings: Settings) -> None:
    credentials = await load(os.environ, time.monotonic)
    async with Transport(credentials, COMPONENT) as transport:
        process = Process(settings, Client(transport, field_manager=COMPONENT), SystemClock())
        await run_until_signal(process.run)


def main() -> int:
    """Run until a signal. Return the exit code for the kubelet: 2 for an invalid setup, 1 for a bug."""
    try:
        settings = read_settings(os.environ)
        logs.configure(COMPONENT, settings.log_level)
        raise_descriptor_limit()
        asyncio.run(_serve(settings))
    except (SettingsError, CredentialsError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except Exception:
        log.exception("virt-controller ends")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

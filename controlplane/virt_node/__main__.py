# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-node's entry point: settings, wiring, tasks."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from controlplane.links.node.messages import NodeState
from controlplane.links.node.node_state import CurrentNodeState
from controlplane.process import logs
from controlplane.process.descriptors import raise_descriptor_limit
from controlplane.process.signals import run_until_signal
from controlplane.process.thread_interrupt import make_interruptible
from controlplane.virt_node.capabilities import read_capabilities, read_host_cpu
from controlplane.virt_node.devices import serve_devices
from controlplane.virt_node.inotify import Inotify
from controlplane.virt_node.kubelet_root import check_pods_directory
from controlplane.virt_node.launcher_dir import PodsDirectory
from controlplane.virt_node.loop_watchdog import exit_when_loop_hangs
from controlplane.virt_node.network import netns
from controlplane.virt_node.server import listen, serve
from controlplane.virt_node.service import Service
from controlplane.virt_node.settings import Settings, read_settings

log = logging.getLogger(__name__)

COMPONENT = "virt-node"


async def run(settings: Settings) -> None:
    """Serve until cancelled."""
    inotify, node_state = Inotify(), CurrentNodeState(NodeState())
    pods = PodsDirectory(str(settings.pods_directory))
    capabilities = read_capabilities(settings.capabilities_directory)
    server = listen(settings.socket)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(exit_when_loop_hangs())
            group.create_task(serve(server, Service(pods, inotify, capabilities, netns.set_up), node_state))
            group.create_task(
                serve_devices(
                    node_state,
                    plugins=settings.device_plugins_directory,
                    devices=settings.devices_directory,
                    kvm_probe=settings.kvm_probe,
                    inotify=inotify,
                    cpu=lambda with_kvm: read_host_cpu(settings.capabilities_directory, with_kvm=with_kvm),
                )
            )
    finally:
        server.close()
        pods.close()
        inotify.close()


def main() -> int:
    """Run until a signal; return the exit code."""
    try:
        settings = read_settings(os.environ)
        logs.configure(COMPONENT, settings.log_level)
        logging.getLogger("hpack").setLevel(logging.WARNING)  # logs every byte at DEBUG
        check_pods_directory(settings.pods_directory, settings.pod_uid, settings.capabilities_directory)
        raise_descriptor_limit()
        make_interruptible()
        asyncio.run(run_until_signal(lambda: run(settings)))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception:
        log.exception("virt-node failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

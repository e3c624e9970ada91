# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only package that imports libvirt, for virt-handler and virt-launcher. No policy and no retries.

connection.py        one connection to one launcher's libvirtd
domain.py            one domain
screenshot.py        a picture of a guest's screen
progress.py          how far a migration is
migration.py         a guest from one libvirtd to another
events.py            libvirt's callbacks become events on a queue
errors.py            libvirt's error codes become our exceptions
calls.py             blocking calls in threads, each with a deadline
loop.py              libvirt's event loop on asyncio's

A launcher is a tenant's, so its libvirtd may send anything at any time. These modules limit what that costs:

transport.py         the socket under a connection, and how to cut it
message_filter.py    which messages reach libvirt's client
cpu_quota.py         processor time per connection
receive_quota.py     received bytes per connection
partial_messages.py  bytes of incomplete messages, over all connections
callback_runner.py   libvirt's callbacks on the event loop: charged, and interrupted when they block
watchdog.py          the thread that checks running calls and callbacks
threads.py           what the kernel knows about a thread
"""

from __future__ import annotations

import os

# libvirt reads both when its binding is imported. Its client logs a line to stderr for each unexpected message, as many
# as the peer sends (17,000 a second measured); errors are raised as well. And the client must not start a libvirtd
# where none listens.
os.environ.setdefault("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null")
os.environ.setdefault("LIBVIRT_AUTOSTART", "0")

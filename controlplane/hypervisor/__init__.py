# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only door to libvirt, for virt-handler and for virt-launcher. No policy: no retries, no "if it is not running".

errors.py      what can go wrong, translated once from libvirt's codes
calls.py       blocking calls in threads, each with a deadline
wire.py        the socket under a connection, for us to end
gate.py        what reaches libvirt before a connection is open
share.py       how much of our time a connection may use
intake.py      how much a connection may have us take in
threads.py     what the kernel says of a thread
watch.py       the thread that looks at what is under way
running.py     what libvirt does in a thread of all connections: charged, and ended when it is held up
loop.py        libvirt's event loop on asyncio's
events.py      callbacks become frozen events on a queue
connection.py  one connection to one launcher's libvirtd
guest.py       one domain
"""

from __future__ import annotations

import os

# libvirt reads them once, when its binding is imported. Its client writes a line to our stderr for each message that
# it does not expect, as many as the other side likes (17,000 a second measured); what matters comes as an error. And
# it must never start a libvirtd itself where nobody listens.
os.environ.setdefault("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null")
os.environ.setdefault("LIBVIRT_AUTOSTART", "0")

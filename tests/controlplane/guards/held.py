# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launcher can do to the threads of all connections: hold them, or have them work for it alone."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_RUNNING = "controlplane/hypervisor/running.py"
_THREADS = "controlplane/hypervisor/threads.py"
_WATCH = "controlplane/hypervisor/watch.py"
_LOOP = "controlplane/hypervisor/loop.py"
_CALLS = "controlplane/hypervisor/calls.py"
_WIRE = "controlplane/hypervisor/wire.py"
_BY_RUNNING = ("tests/controlplane/hypervisor/test_running.py",)
_BY_WATCH = ("tests/controlplane/hypervisor/test_watch.py",)
_BY_LOOP = ("tests/controlplane/hypervisor/test_loop.py",)
_BY_HOSTILE = ("tests/controlplane/hypervisor/test_hostile.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_RUNNING,
        line="                interrupt(thread)\n",
        without="                pass\n",
        because="A socket that lingers, sent with an event, has all of virt-handler stand still as long as it says.",
        tests=_BY_RUNNING,
        may_hang=True,
    ),
    Guard(
        file=_RUNNING,
        line="                self._wire.cut(HELD)\n",
        without="                pass\n",
        because="A launcher could hold up everybody for a tenth of a second, as often as it likes.",
        tests=_BY_RUNNING,
    ),
    Guard(
        file=_RUNNING,
        line="                return _SURE_SECONDS if self._held() else _NEXT_LOOK_SECONDS\n",
        without="                pass\n",
        because="Who works, or slept for a moment, would be cut for it.",
        tests=_BY_RUNNING,
    ),
    Guard(
        file=_RUNNING,
        line="            self._charge(used)\n            slept_at",
        without="            slept_at",
        because="Who floods would be read for as long as it goes on, and then be told that it was too much.",
        tests=_BY_RUNNING,
    ),
    Guard(
        file=_RUNNING,
        line="        others = self._wire.threads() if self._wire is not None else ()\n",
        without="        others: tuple[int, ...] = ()\n",
        because="A call that lingers with libvirt's lock of a connection would hold whatever of it runs on the loop.",
        tests=_BY_RUNNING,
        may_hang=True,
    ),
    Guard(
        file=_RUNNING,
        line="            if not self._is_running:\n                return None\n",
        without="",
        because="The signal would meet what the thread does next.",
        tests=_BY_RUNNING,
    ),
    Guard(
        file=_THREADS,
        line='(b"futex", b"poll")',
        without='(b"poll",)',
        because="Everybody whose event comes while another thread has Python's lock would be cut, on a busy machine.",
        tests=_BY_RUNNING,
    ),
    Guard(
        file=_THREADS,
        line='(b"futex", b"poll")',
        without='(b"futex",)',
        because="Everybody whose answer is waited for while the machine is busy would be cut.",
        tests=_BY_RUNNING,
    ),
    Guard(
        file=_WATCH,
        line="        if first < self._set_to:\n",
        without="        if first < self._set_to == math.inf:\n",
        because="What holds the loop would be looked at when a call is due, or never.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="    except Exception:  # or nobody would be looked at any more\n",
        without="    except OSError:\n",
        because="After one look that fails nobody is watched any more.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="            _set_timer(self._timer, 0.0)\n",
        without="            return\n",
        because="Each thing that libvirt does would wake the process once more.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_CALLS,
        line="                interrupt(thread)\n",
        without="                pass\n",
        because="A socket that lingers holds the thread of a call for the rest of its deadline, and libvirt's locks.",
        tests=_BY_HOSTILE,
        may_hang=True,
    ),
    Guard(
        file=_WIRE,
        line="            self._refuse_descriptors()\n",
        without="",
        because="Whatever a launcher sends is closed by us, however long that takes.",
        tests=("tests/controlplane/hypervisor/test_wire.py",),
    ),
    Guard(
        file=_LOOP,
        line="            self._is_paused = True\n",
        without="            self._is_paused = False\n",
        because="Launchers that flood together would have many portions of a turn of the loop.",
        tests=_BY_LOOP,
    ),
    Guard(
        file=_LOOP,
        line="self._epoll.poll(0, 1)",
        without="self._epoll.poll(0, _AT_ONCE)",
        because="The first of many that flood would be served each time, and the last never.",
        tests=_BY_LOOP,
        may_hang=True,
    ),
)

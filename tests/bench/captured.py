# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compromised launcher: its supervisor is stopped, and a hostile server replaces libvirtd.

It is compromised after its report and before libvirtd listens, so virt-handler treats it as a new launcher, up to the
start of the domain. The server runs as any program of the tenant would: in the cgroup and namespaces of the Pod, as the
launcher's user.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from controlplane.domain import layout
from lab import Lab
from tests.bench.seats import Seats
from tests.controlplane.hypervisor import hostile
from tests.e2e.cluster import Cluster

_TAKE = f"""
import os, signal, sys, time

PODS = "/var/lib/kubelet/pods"
before, deadline = set(os.listdir(PODS)), time.monotonic() + 120
print("ready", flush=True)


def processes(uid):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if uid in open(f"/proc/{{pid}}/cgroup").read():
                yield int(pid), open(f"/proc/{{pid}}/cmdline").read().split(chr(0))
        except (FileNotFoundError, ProcessLookupError):
            continue


def reported():
    for uid in set(os.listdir(PODS)) - before:
        if os.path.exists(f"{{PODS}}/{{uid}}/volumes/kubernetes.io~empty-dir/{layout.RUN_VOLUME}/{layout.REPORT}"):
            return uid


while not (uid := reported()):
    if time.monotonic() > deadline:
        sys.exit("no launcher came")
    time.sleep(0.002)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    for pid, words in processes(uid):
        try:
            if "controlplane.virt_launcher" in words and "python" in words[0]:
                os.kill(pid, signal.SIGSTOP)
            elif words[0].endswith("/libvirtd"):
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
print(uid, flush=True)
"""

_RELEASE = """
import os, signal, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if sys.argv[1] in open(f"/proc/{pid}/cgroup").read():
            os.kill(int(pid), signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        pass
"""

_SERVE = f"""
import os, sys
from collections import Counter
from pathlib import Path
path, server = Path("{"/".join((layout.RUN, *layout.LIBVIRT_SOCKET))}"), None
path.parent.mkdir(exist_ok=True)
path.unlink(missing_ok=True)
print("ready", flush=True)
for line in sys.stdin:
    summary = "nothing"
    if server is not None:
        calls = dict(sorted(Counter(server.calls).items()))
        summary = f"{{server.callers}} callers, calls (procedure: times) {{calls}}"
        server.close()
        path.unlink()
        server = None
    if line.strip():
        behave, options = ATTACKS.get(line.strip(), (GOOD, {{}}))
        server = Hostile(path, behave, **options)
    print(summary, flush=True)
"""


class Captured:
    """One compromised launcher, until its machine is deleted."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def attack(self, way: str) -> None:
        """Serve this attack from now on: a name in hostile.ATTACKS; any other name is a server that answers
        everything.
        """
        self._send(way)

    def rest(self) -> str:
        """Close every connection and stop serving; return a summary since the last attack, for a log."""
        return self._send("")

    def _send(self, way: str) -> str:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with suppress(BrokenPipeError):
            self._server.stdin.write(f"{way}\n")
            self._server.stdin.flush()
        return self._server.stdout.readline().strip() or "the machine is gone"


@contextmanager
def captured(cluster: Cluster, seats: Seats, name: str, namespace: str) -> Iterator[Captured]:
    """Start a halted VM with a compromised launcher inside the block; it is halted again after it."""
    node = Lab(cluster.name).node(cluster.nodes[0])
    with _process(node.command(["python3", "-c", _TAKE])) as taking:
        _expect(taking, "ready")
        seats.want(name, "Always")
        assert taking.stdout is not None
        uid = taking.stdout.readline().strip()
    pod = cluster.launcher(name, namespace)
    if pod["metadata"]["uid"] != uid:
        raise RuntimeError(f"captured Pod {uid!r}, which is not the launcher of {namespace}/{name}")
    with open(hostile.__file__, encoding="utf-8") as file:
        program = file.read() + _SERVE
    inside = ("exec", "-i", pod["metadata"]["name"], "-n", namespace, "-c", "compute", "--", "python3", "-u", "-c")
    try:
        with _process([*cluster.program, *inside, program]) as server:
            _expect(server, "ready")
            yield Captured(server)
    finally:
        seats.want(name, "Halted")
        cluster.on_node(node.name, _RELEASE, uid)
        seats.wait_gone(name)


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):  # the last command may not reach it
                if stream is not None:
                    stream.close()


def _expect(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    if (line := process.stdout.readline().strip()) != word:
        raise RuntimeError(f"expected {word!r}, got {line!r}")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher Pod without a cluster: runc, the real image, user 107, no capabilities, read-only root, own network.

The test does what virt-handler does from outside the Pod (bridge, tap, the domain over libvirt's socket).
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import tarfile
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from controlplane.api.launch_plan import LaunchPlan, render_plan
from controlplane.domain import layout

_IMAGE_ENVIRONMENT = ["LANG=C", "PATH=/usr/local/bin:/usr/bin:/usr/sbin"]


@dataclass(frozen=True)
class Images:
    """The unpacked root file systems of two images, and the launcher's entrypoint."""

    launcher: pathlib.Path
    guest: pathlib.Path
    command: tuple[str, ...]


def built_images(home: pathlib.Path) -> Images:
    """Build the launcher image from this tree and the test guest image. Unpack both below home."""
    from images.build import Options, build  # noqa: PLC0415 - only these tests need the image builder
    from images.store import Store, cache_directory  # noqa: PLC0415

    store = Store(cache_directory(), lambda text: None)
    unpacked = {}
    for name in ("virt-launcher", "test-guest"):
        built = build(name, store, None, Options(tag="test"))
        unpacked[name] = unpack(built.image.path, home / name)
    return Images(home / "virt-launcher", home / "test-guest", tuple(unpacked["virt-launcher"]["Entrypoint"]))


def unpack(archive: pathlib.Path, target: pathlib.Path) -> dict[str, Any]:
    """Unpack the layers of an OCI archive. Return its configuration."""
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as whole:

        def blob(digest: str) -> Any:
            return whole.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")

        index = json.load(whole.extractfile("index.json"))  # type: ignore[arg-type]
        manifest = json.load(blob(index["manifests"][0]["digest"]))
        for layer in manifest["layers"]:
            # not tarfile: its `filter` needs Python 3.11.4
            subprocess.run(["tar", "--extract", "--directory", target], input=blob(layer["digest"]).read(), check=True)
        config: dict[str, Any] = json.load(blob(manifest["config"]["digest"]))["config"]
        return config


@dataclass
class LauncherPod:
    """One Pod. `start` runs it. `run` is its emptyDir as the node sees it."""

    home: pathlib.Path
    images: Images
    plan: LaunchPlan
    mounts: dict[str, pathlib.Path] = field(default_factory=dict)
    """Read-only mounts, by path in the Pod."""
    shared: dict[str, pathlib.Path] = field(default_factory=dict)
    """Writable mounts."""
    group: str = ""
    """Parent of its control group. The default is the root of each hierarchy."""
    cpu_shares: int = 1024
    name: str = field(default_factory=lambda: f"virtops-{uuid.uuid4().hex[:8]}")
    process: subprocess.Popen[bytes] | None = None

    @property
    def run(self) -> pathlib.Path:
        return self.home / "run"

    @property
    def socket(self) -> pathlib.Path:
        return self.run.joinpath(*layout.LIBVIRT_SOCKET)

    @property
    def termination_message(self) -> str:
        return (self.home / "termination-log").read_text()

    @property
    def console(self) -> str:
        return (self.home / "stdout").read_text(errors="replace")

    @property
    def log(self) -> str:
        return (self.home / "stderr").read_text(errors="replace")

    def start(self) -> None:
        self.run.mkdir()
        os.chown(self.run, 0, layout.UID)
        self.run.chmod(0o2777)
        (self.home / "termination-log").touch()
        (self.home / "termination-log").chmod(0o666)
        (self.home / "resolv.conf").write_text(
            "nameserver 10.96.0.10\nsearch default.svc.cluster.local cluster.local\n"
        )
        (self.home / "plan").mkdir()
        (self.home / "plan" / layout.PLAN_FILE).write_text(render_plan(self.plan))
        (self.home / "config.json").write_text(json.dumps(self._config()))
        _run("ip", "netns", "add", self.name)
        first_port = "echo 67 >/proc/sys/net/ipv4/ip_unprivileged_port_start"
        _run("ip", "netns", "exec", self.name, "sh", "-c", first_port)
        with (self.home / "stdout").open("wb") as out, (self.home / "stderr").open("wb") as err:
            command = ["runc", "run", "--bundle", str(self.home), self.name]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def make_network(self, gateway: str) -> None:
        """Create bridge, address and tap, as virt-handler does."""
        inside = ("ip", "-n", self.name)
        _run(*inside, "link", "add", layout.BRIDGE, "address", "02:00:00:00:00:00", "type", "bridge")
        _run(*inside, "addr", "add", gateway, "dev", layout.BRIDGE)
        tap = ("tuntap", "add", layout.TAP, "mode", "tap", "user", "107", "group", "107", "vnet_hdr")
        _run(*inside, *tap)
        _run(*inside, "link", "set", layout.TAP, "master", layout.BRIDGE, "up")
        _run(*inside, "link", "set", layout.BRIDGE, "up")

    def pids(self, program: str) -> list[int]:
        """Return the process IDs of a program in the Pod."""
        return [pid for pid, path in self.programs().items() if path.endswith(program)]

    def programs(self) -> dict[int, str]:
        """Return the program path of each process in the Pod."""
        listed = subprocess.run(["runc", "ps", "--format", "json", self.name], capture_output=True, check=True)
        programs = {}
        for pid in json.loads(listed.stdout):
            with suppress(FileNotFoundError, ProcessLookupError):  # it may have ended since it was listed
                programs[pid] = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
        return programs

    def terminate(self) -> None:
        """Send SIGTERM, as the kubelet does first."""
        _run("runc", "kill", self.name, "TERM")

    def wait(self, timeout: float = 240) -> int:
        """Wait for the Pod's end, and check that the launcher logged no exception. Return the exit code."""
        assert self.process is not None
        code = self.process.wait(timeout)
        assert "Traceback" not in self.log, self.log
        return code

    def remove(self) -> None:
        """Remove the Pod with all its resources."""
        subprocess.run(["runc", "delete", "--force", self.name], capture_output=True, check=False)
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)

    def _config(self) -> dict[str, Any]:
        none: list[str] = []
        capabilities = dict.fromkeys(("bounding", "effective", "permitted", "inheritable", "ambient"), none)
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": layout.UID, "gid": layout.UID},
                "args": list(self.images.command),
                "env": [*_IMAGE_ENVIRONMENT, "LOG_LEVEL=DEBUG"],
                "cwd": "/",
                "capabilities": capabilities,
                "noNewPrivileges": True,
            },
            "root": {"path": str(self.images.launcher), "readonly": True},
            "hostname": "guest",
            "mounts": [*_system_mounts(), *self._own_mounts()],
            "linux": {
                "namespaces": [
                    *({"type": kind} for kind in ("pid", "ipc", "uts", "mount")),
                    {"type": "network", "path": f"/var/run/netns/{self.name}"},
                ],
                "devices": [{"path": "/dev/net/tun", "type": "c", "major": 10, "minor": 200, "fileMode": 0o666}],
                "resources": {
                    "devices": [{"allow": True, "access": "rwm"}],
                    "cpu": {"shares": self.cpu_shares},
                },
                "cgroupsPath": str(pathlib.PurePosixPath("/", self.group, self.name)),
                "maskedPaths": ["/proc/kcore", "/proc/keys"],
                "readonlyPaths": ["/proc/sys"],
            },
        }

    def _own_mounts(self) -> list[dict[str, Any]]:
        bound = {layout.RUN: (self.run, "rw"), "/dev/termination-log": (self.home / "termination-log", "rw")}
        bound["/etc/resolv.conf"] = (self.home / "resolv.conf", "ro")
        bound[layout.PLAN_DIRECTORY] = (self.home / "plan", "ro")
        bound |= {path: (source, "ro") for path, source in self.mounts.items()}
        bound |= {path: (source, "rw") for path, source in self.shared.items()}
        return [
            {"destination": path, "type": "bind", "source": str(source), "options": ["rbind", mode]}
            for path, (source, mode) in bound.items()
        ]


def _system_mounts() -> list[dict[str, Any]]:
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {
            "destination": "/dev/pts",
            "type": "devpts",
            "source": "devpts",
            "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
        },
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro", "nosuid"]},
    ]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the processes of a node, and those that serve, open by a path or read without a bound: all of it, as a list.

A name leads wherever whoever may write a directory wants; a read without a bound ends when the writer wants. So what
tenants can touch is reached from a descriptor, component by component and over no link, and read up to a limit. What
else is opened by name or read whole is a line in here, with whose it is: nothing of it is of a Pod, a launcher, a guest
or the other end of a connection. That links are refused indeed: virt_node/test_launcher_dir.py.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from controlplane.virt_node import launcher_dir
from tests.controlplane.guards.copy import ROOT

CODE = ROOT / "controlplane"
SERVING = (
    "virt_api",
    "listener.py",
    "connection.py",
    "written.py",
    "health.py",
    "sockets.py",
    "metrics.py",
    "peers.py",
)
WATCHED = ("virt_node", "virt_handler", "node_link", "hypervisor", *SERVING)

OF_OS = {one.__name__ for one in os.supports_dir_fd | os.supports_fd | os.supports_follow_symlinks} | {
    *("listdir", "scandir", "walk", "fwalk", "makedirs", "removedirs", "renames", "replace", "lchown", "fdopen"),
    *("setxattr", "getxattr", "listxattr", "removexattr", "symlink", "chroot", "spawnv", "posix_spawn", "system"),
}
OF_PATHS = {
    *("read_text", "read_bytes", "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "iterdir", "glob"),
    *("rglob", "exists", "is_file", "is_dir", "is_socket", "is_symlink", "stat", "lstat", "chmod", "unlink", "mkdir"),
    *("rmdir", "rename", "readlink", "samefile"),
}
OF_SOCKETS = {"connect", "bind", "sock_connect", "open_unix_connection", "start_unix_server", "create_unix_server"}
OF_TLS = {"load_cert_chain"}
OTHER_WAYS = {"shutil", "tempfile", "glob", "fileinput", "subprocess", "io", "http.server"}
"""Modules that open things by name; none of them is needed here."""
WHOLE = {"readline", "readlines", "readuntil", "read_text", "read_bytes", "communicate"}
SERVES_FILES = {"FileResponse", "static", "add_static", "StaticResource", "sendfile", "sendfile_fallback"}

Listed = Mapping[str, Mapping[str, str]]

BY_NAME: Listed = {
    "hypervisor/intake.py": {
        "os.open(f'/proc/self/task/{thread}/io', os.O_RDONLY | os.O_CLOEXEC)": "the kernel's: a thread of our own",
    },
    "hypervisor/threads.py": {
        "Path(f'/proc/self/task/{thread}/stat').read_bytes()": "the kernel's: a thread of our own",
        "Path(f'/proc/self/task/{thread}/wchan').read_bytes()": "the same",
    },
    "virt_node/launcher_dir.py": {
        "os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)": "the kubelet's directory of Pods, once",
        "made.bind(f'{proc_path(parent)}/{name}')": "made anew, by the descriptor of its directory",
    },
    "virt_node/launcher_process.py": {
        "os.listdir(proc)": "the kernel's: numbers of processes",
        "os.open(f'{proc}/{pid}/ns/net', os.O_RDONLY | os.O_CLOEXEC)": "the kernel's: a number, held by a pidfd",
        "os.open(path, os.O_RDONLY | os.O_CLOEXEC)": "the kernel's: a process's cgroup and name",
        "os.stat(path)": "the kernel's: namespaces of process 1 and of this one",
    },
    "virt_node/server.py": {
        "path.lstat()": "our own socket",
        "path.unlink()": "our own socket",
        "server.bind(str(path))": "our own socket",
        "os.chown(path, -1, uid)": "our own socket",
        "os.chmod(path, 432)": "our own socket",
    },
    "virt_node/capabilities.py": {
        "directory.glob('*.xml')": "an init container's of our own Pod",
        "one.stat()": "an init container's of our own Pod",
        "one.read_bytes()": "an init container's of our own Pod",
    },
    "virt_node/network/links.py": {
        "os.open(_TUN_DEVICE, os.O_RDWR | os.O_CLOEXEC)": "the kernel's",
        "path.read_text()": "the kernel's: a sysctl",
        "path.write_text(value)": "the kernel's: a sysctl",
    },
    "virt_node/device_plugins/device.py": {
        "os.stat(os.path.join(root, device.path.lstrip('/')))": "the node's devices, by our own table",
        "os.stat(source)": "the node's devices, by our own table",
        "directory.mkdir(mode=448, parents=True, exist_ok=True)": "our own directory of devices",
        "node.lstat()": "our own directory of devices",
        "node.unlink(missing_ok=True)": "our own directory of devices",
        "os.mknod(node, stat.S_IFCHR | 438, wanted.st_rdev)": "our own directory of devices",
        "node.chmod(438)": "our own directory of devices",
    },
    "virt_node/device_plugins/endpoint.py": {
        "directory.glob(f'virtops-{plugin.device.name}-*.sock')": "the kubelet's directory of plugins",
        "attempt.connect(str(path))": "the kubelet's directory of plugins",
        "path.unlink(missing_ok=True)": "the kubelet's directory of plugins",
        "(directory / name).unlink(missing_ok=True)": "the kubelet's directory of plugins",
    },
    "virt_node/device_plugins/serve.py": {
        "os.open(directory, os.O_PATH | os.O_DIRECTORY)": "the kubelet's directory of plugins",
        "path.lstat()": "the kubelet's directory of plugins",
    },
    "virt_handler/node_client.py": {
        "asyncio.get_running_loop().sock_connect(connection, path)": "virt-node's socket",
    },
    "virt_handler/migration/entrance.py": {
        "asyncio.get_running_loop().sock_connect(connection, path)": "no name: a descriptor",
    },
    "virt_handler/migration/passage.py": {
        "asyncio.get_running_loop().sock_connect(connection, (host, port))": "an address, not a path",
        "own.bind(path)": "our own socket, where no launcher sees it",
        "os.unlink(self._own)": "the same",
    },
    "virt_handler/migration/network.py": {
        "Path('/proc/net/if_inet6').read_text(encoding='ascii')": "the kernel's: addresses of our own Pod",
    },
    "virt_handler/report_file.py": {"os.fdopen(descriptor, 'rb', closefd=False)": "no name: a descriptor"},
    "virt_handler/launchers/session.py": {"self._tools.connect(found.path)": "no name: a descriptor"},
    "peers.py": {"context.load_cert_chain(f'/proc/self/fd/{descriptor}')": "no name: memory of our own"},
    "listener.py": {"bind(address, port)": "no name: an address"},
    "sockets.py": {"listening.bind(where)": "no name: an address"},
}

READ_WHOLE: Listed = {
    "virt_api/migrations.py": {"read()": "a review of an API server's, as large as one may be"},
    "hypervisor/threads.py": {
        "Path(f'/proc/self/task/{thread}/stat').read_bytes()": "the kernel's: a thread of our own",
        "Path(f'/proc/self/task/{thread}/wchan').read_bytes()": "the same",
    },
    "virt_node/capabilities.py": {"one.read_bytes()": "an init container's of our own Pod, after a look at its size"},
    "virt_node/kvm.py": {"process.communicate()": "a program's of our own image"},
    "virt_node/network/links.py": {"path.read_text()": "the kernel's: a sysctl"},
    "virt_handler/own_pair.py": {"child.communicate()": "a program's of our own image, for so long"},
    "virt_handler/migration/network.py": {
        "Path('/proc/net/if_inet6').read_text(encoding='ascii')": "the kernel's: addresses of our own Pod",
    },
    "virt_launcher/capabilities.py": {
        "Path('/proc/self/mounts').read_text()": "the kernel's",
        "one.read_text()": "our own libvirtd's, in an init container of our own Pod",
    },
    "virt_launcher/prepare.py": {
        "process.communicate(timeout=_QEMU_IMG_SECONDS)": "a program's of our own image, for so long",
        "process.communicate()": "the same, when it was killed",
    },
    "virt_launcher/probes.py": {"reader.readline()": "a name that ends within the server's limit of 64 bytes"},
}


def calls(*parts: str) -> Iterator[tuple[str, ast.Call, str]]:
    """Return every call in these packages and files: where it is, and the last name of what is called."""
    for path, tree in trees(*parts):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                yield path, node, name


def trees(*parts: str) -> Iterator[tuple[str, ast.Module]]:
    for part in parts:
        found = [CODE / part] if part.endswith(".py") else sorted((CODE / part).rglob("*.py"))
        assert found, part
        for path in found:
            yield str(path.relative_to(CODE)), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def is_by_name(call: ast.Call, name: str) -> bool:
    """Tell whether a call resolves a path: neither one below a descriptor nor what a descriptor stands for."""
    if any(one.arg in ("dir_fd", "src_dir_fd") for one in call.keywords):
        return False
    if call.args and ast.unparse(call.args[0]).startswith("proc_path("):
        return False
    whose = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if whose == "os":
        return name in OF_OS
    return name in OF_PATHS | OF_SOCKETS | OF_TLS or (not whose and name == "open")


def by_file(found: Iterator[tuple[str, ast.Call]]) -> dict[str, set[str]]:
    listed: dict[str, set[str]] = {}
    for path, call in found:
        listed.setdefault(path, set()).add(ast.unparse(call))
    return listed


def texts(listed: Listed) -> dict[str, set[str]]:
    return {path: set(lines) for path, lines in listed.items()}


def test_what_is_opened_by_name_is_nobody_elses() -> None:
    found = by_file((path, call) for path, call, name in calls(*WATCHED) if is_by_name(call, name))
    assert found == texts(BY_NAME)


def test_no_other_way_to_open_by_name_is_loaded() -> None:
    loaded = {
        (path, name)
        for path, tree in trees(*WATCHED)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert not [one for one in loaded if one[1] in OTHER_WAYS or one[1].partition(".")[0] in OTHER_WAYS]
    started = [(path, ast.unparse(call.args[0])) for path, call, name in calls(*WATCHED) if "subprocess" in name]
    ours = [("virt_node/kvm.py", "sys.executable"), ("virt_handler/own_pair.py", "sys.executable")]
    assert started == ours, "with a program of our own image"


def test_below_a_descriptor_no_link_is_followed() -> None:
    """Each open of a name that a tenant may have put there; how the last one is looked at is its caller's."""
    flags = [
        ast.unparse(call.args[1])
        for _unused, call, name in calls("virt_node/launcher_dir.py")
        if name == "open" and any(one.arg == "dir_fd" for one in call.keywords)
    ]
    assert len(flags) >= 4
    for one in flags:
        assert eval(one, vars(launcher_dir)) & os.O_NOFOLLOW, one
    looks = [call for _unused, call, name in calls("virt_node/launcher_dir.py") if name in ("stat", "chown", "chmod")]
    for call in looks:
        words = ast.unparse(call)
        assert "follow_symlinks=False" in words or "proc_path(" in words, words


def test_nothing_is_read_without_a_bound() -> None:
    """A guest that writes no end of a line, or a launcher no end of a file, takes bounded room of others."""
    found = by_file(
        (path, call)
        for path, call, name in calls(*WATCHED, "virt_launcher")
        if name in WHOLE or (name == "read" and not call.args)
    )
    assert found == texts(READ_WHOLE)


def test_nothing_serves_files() -> None:
    """Who exports a disk by serving its directory serves whatever a link in there leads to."""
    served = [(path, name) for path, _unused, name in calls(".") if name in SERVES_FILES]
    assert not served


@pytest.mark.parametrize("planted", ["open(f'/x/{name}')", "os.open(name, 0)", "os.chown(path, 1, 1)", "a.read_text()"])
def test_a_name_would_be_found(planted: str) -> None:
    (call,) = (one for one in ast.walk(ast.parse(planted)) if isinstance(one, ast.Call))
    assert is_by_name(call, planted.partition("(")[0].rpartition(".")[2])


def test_each_line_says_whose_it_is() -> None:
    for listed in (BY_NAME, READ_WHOLE):
        for path, lines in listed.items():
            assert Path(CODE / path).exists()
            assert all(lines.values())

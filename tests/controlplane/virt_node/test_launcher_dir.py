# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The walk into a launcher's emptyDir, on real directories, with entries that a tenant can plant."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane.domain import layout
from controlplane.virt_node.inotify import NotYet
from controlplane.virt_node.launcher_dir import PodsDirectory, Refused, admit, closing_fd

pytestmark = pytest.mark.root  # the tests set the owners of files

UID, NEIGHBOUR = "11111111-aaaa-bbbb-cccc-000000000001", "22222222-aaaa-bbbb-cccc-000000000002"
CACHE = layout.CAPABILITY_CACHE


def emptydir(pods: Path, uid: str) -> Path:
    run = pods / uid / "volumes" / "kubernetes.io~empty-dir" / "run"
    run.mkdir(parents=True)
    os.chown(run, 0, layout.UID)
    run.chmod(0o2777)
    return run


def listening(path: Path, owner: int = layout.UID) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(path))
    server.listen()
    os.chown(path, owner, owner)
    return server


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # socket paths of at most 108 bytes
    return tmp_path


@pytest.fixture
def run(pods: Path) -> Path:
    run = emptydir(pods, UID)
    (run / "libvirt").mkdir()
    return run


@pytest.fixture
def directory(pods: Path) -> Iterator[PodsDirectory]:
    opened = PodsDirectory(str(pods))
    yield opened
    opened.close()


def dial(descriptor: int) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(1)
    client.connect(f"/proc/self/fd/{descriptor}")
    return client


def test_a_launchers_socket_is_connected_through_its_descriptor(run: Path, directory: PodsDirectory) -> None:
    with listening(run / "libvirt" / "libvirt-sock") as server:
        descriptor = directory.open_socket(UID)
        with dial(descriptor) as client:
            accepted, _unused = server.accept()
            with accepted:
                client.sendall(b"hello")
                assert accepted.recv(5) == b"hello"
        os.close(descriptor)


def test_a_group_is_admitted_only_to_the_checked_socket(run: Path, directory: PodsDirectory) -> None:
    """The launcher swaps the name in between: the new inode stays unchanged."""
    path = run / "libvirt" / "libvirt-sock"
    with listening(path):
        path.chmod(0o700)
        descriptor = directory.open_socket(UID)
        path.rename(run / "proven")
        with listening(path):
            path.chmod(0o700)
            before = path.stat()
            admit(descriptor, 4711)
            assert (path.stat().st_gid, path.stat().st_mode) == (before.st_gid, before.st_mode)
        proven = (run / "proven").stat()
        assert (proven.st_uid, proven.st_gid, stat.S_IMODE(proven.st_mode)) == (layout.UID, 4711, 0o770)
        assert (run / "libvirt").stat().st_gid != 4711
        os.close(descriptor)


def test_a_swap_after_the_check_still_reaches_the_checked_socket(
    run: Path, pods: Path, directory: PodsDirectory
) -> None:
    theirs = emptydir(pods, NEIGHBOUR)
    path = run / "libvirt" / "libvirt-sock"
    with listening(path) as mine, listening(theirs / "libvirt-sock") as neighbour:
        descriptor = directory.open_socket(UID)
        path.unlink()
        path.symlink_to(theirs / "libvirt-sock")
        with dial(descriptor):
            mine.accept()[0].close()
        neighbour.setblocking(False)
        with pytest.raises(BlockingIOError):
            neighbour.accept()
        os.close(descriptor)


def replace_directory(run: Path, theirs: Path) -> None:
    (run / "libvirt").rmdir()
    (run / "libvirt").symlink_to(theirs / "libvirt")


def link_to_socket(run: Path, theirs: Path) -> None:
    (run / "libvirt" / "libvirt-sock").symlink_to(theirs / "libvirt" / "libvirt-sock")


def regular_file(run: Path, theirs: Path) -> None:
    (run / "libvirt" / "libvirt-sock").write_text("")


def fifo(run: Path, theirs: Path) -> None:
    os.mkfifo(run / "libvirt" / "libvirt-sock")


def roots_socket(run: Path, theirs: Path) -> None:
    listening(run / "libvirt" / "libvirt-sock", owner=0).close()


def file_for_directory(run: Path, theirs: Path) -> None:
    (run / "libvirt").rmdir()
    (run / "libvirt").write_text("")


def whole_volume_as_link(run: Path, theirs: Path) -> None:
    shutil.rmtree(run)
    run.symlink_to(theirs)


@pytest.mark.parametrize(
    "plant",
    [replace_directory, link_to_socket, regular_file, fifo, roots_socket, file_for_directory, whole_volume_as_link],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_entry_instead_of_the_socket_is_refused(
    plant: Callable[[Path, Path], None], run: Path, pods: Path, directory: PodsDirectory
) -> None:
    theirs = emptydir(pods, NEIGHBOUR)
    (theirs / "libvirt").mkdir()
    with listening(theirs / "libvirt" / "libvirt-sock"):
        plant(run, theirs)
        with pytest.raises(Refused):
            directory.open_socket(UID)


@pytest.mark.parametrize("uid", ["..", ".", "", "a/b", "../../etc", "-a", "a" * 65], ids=repr)
def test_an_invalid_pod_uid_is_never_used_as_a_path(uid: str, directory: PodsDirectory) -> None:
    with pytest.raises(Refused, match="is not a Pod UID"):
        directory.open_run(uid)


def test_a_missing_pod_is_not_yet_there_and_names_the_directory_to_watch(pods: Path, directory: PodsDirectory) -> None:
    with pytest.raises(NotYet) as caught:
        directory.open_run(UID)
    with caught.value as gap:
        assert gap.identity == (pods.stat().st_dev, pods.stat().st_ino)


def test_a_report_is_opened_for_reading(run: Path, directory: PodsDirectory) -> None:
    (run / layout.REPORT).write_bytes(b"x" * 100)
    with os.fdopen(directory.open_file(UID, layout.REPORT), "rb") as file:
        assert file.read() == b"x" * 100
        assert fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK], ids=["fifo", "device", "socket"])
def test_a_special_file_is_refused_before_it_is_opened(kind: int, run: Path, directory: PodsDirectory) -> None:
    """Opening a device can have effects: a watchdog starts to count. No driver has the number of this device."""
    os.mknod(run / layout.REPORT, kind | 0o666, os.makedev(511, 4711))
    with pytest.raises(Refused, match="not a regular file"):
        directory.open_file(UID, layout.REPORT)


def test_a_link_instead_of_a_report_is_refused(run: Path, directory: PodsDirectory) -> None:
    (run / layout.REPORT).symlink_to("/etc/passwd")
    with pytest.raises(Refused, match="not a regular file"):
        directory.open_file(UID, layout.REPORT)


@pytest.mark.parametrize("channel", layout.MIGRATION_SOCKETS)
def test_a_launcher_without_a_migration_directory_can_be_a_source(
    channel: str, run: Path, directory: PodsDirectory
) -> None:
    """A launcher of an older version has made no directory. After an upgrade its guest migrates to a new launcher."""
    components = layout.MIGRATION_SOCKETS[channel]
    with (
        directory.listen(UID, components) as server,
        closing_fd(directory.open_socket(UID, components)) as descriptor,
        dial(descriptor) as client,
    ):
        accepted, _unused = server.accept()
        with accepted:
            client.sendall(b"a guest")
            assert accepted.recv(16) == b"a guest"
    assert run.joinpath(*components[:-1]).stat().st_uid == layout.UID


def test_no_migration_directory_is_made_through_a_link(run: Path, pods: Path, directory: PodsDirectory) -> None:
    target = pods / "hostdir"
    target.mkdir()
    (run / layout.MIGRATION_DIRECTORY).symlink_to(target)
    with pytest.raises(Refused):
        directory.listen(UID, layout.MIGRATION_SOCKETS["memory"])
    assert (list(target.iterdir()), target.stat().st_uid) == ([], 0)


def test_capabilities_are_written_into_directories_of_the_launcher(run: Path, directory: PodsDirectory) -> None:
    directory.write_files(UID, CACHE, {"q.xml": b"<qemuCaps/>"})
    cache = run.joinpath(*CACHE)
    assert (cache / "q.xml").read_bytes() == b"<qemuCaps/>"
    assert (cache / "q.xml").stat().st_mode & 0o777 == 0o644
    assert {written.stat().st_uid for written in (cache, *cache.parents[:4])} == {layout.UID}
    assert [path.name for path in cache.iterdir()] == ["q.xml"]


def test_existing_entries_keep_their_owner_and_mode(run: Path, directory: PodsDirectory) -> None:
    """A chown of existing entries would give root's files to a tenant who planted a name."""
    cache = run.joinpath(*CACHE)
    cache.mkdir(parents=True)
    for existing in (run / "cache", cache):
        os.chown(existing, 4711, 4711)
        existing.chmod(0o710)
    (cache / "q.xml").write_text("root's")
    (cache / "q.xml").chmod(0o600)

    directory.write_files(UID, CACHE, {"q.xml": b"ours", "r.xml": b"ours"})

    kept = [(path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) for path in (run / "cache", cache, cache / "q.xml")]
    assert kept == [(4711, 0o710), (4711, 0o710), (0, 0o600)]
    assert (cache / "q.xml").read_text() == "root's"
    assert (cache / "r.xml").stat().st_uid == layout.UID


def test_a_link_among_the_cache_directories_is_refused_and_its_target_untouched(
    run: Path, pods: Path, directory: PodsDirectory
) -> None:
    target = pods / "hostdir"
    target.mkdir()
    (run / "cache").symlink_to(target)
    with pytest.raises(Refused):
        directory.write_files(UID, CACHE, {"q.xml": b"1"})
    assert list(target.iterdir()) == []
    assert target.stat().st_uid == 0


def test_a_planted_staging_link_is_replaced_not_followed(run: Path, pods: Path, directory: PodsDirectory) -> None:
    victim = pods / "victim"
    victim.write_text("keep")
    (run / "cache").mkdir()
    (run / "cache" / f".q.xml.{os.getpid()}").symlink_to(victim)
    directory.write_files(UID, ("cache",), {"q.xml": b"1"})
    assert victim.read_text() == "keep"
    assert (run / "cache" / "q.xml").read_bytes() == b"1"


def test_a_launchers_volume_exists_until_the_kubelet_removes_it(
    run: Path, pods: Path, directory: PodsDirectory
) -> None:
    assert directory.has_run(UID)
    shutil.rmtree(run)
    assert not directory.has_run(UID)  # other remains of the Pod do not count
    shutil.rmtree(pods / UID)
    assert not directory.has_run(UID)


def test_a_link_instead_of_a_volume_does_not_count_as_absent(run: Path, directory: PodsDirectory) -> None:
    shutil.rmtree(run)
    run.symlink_to("/nowhere")
    with pytest.raises(Refused):
        directory.has_run(UID)


def test_no_operation_leaks_a_descriptor(run: Path, pods: Path, directory: PodsDirectory) -> None:
    whole_volume_as_link(emptydir(pods, NEIGHBOUR), run)

    def attempt() -> None:
        for act in (
            lambda: directory.has_run(UID),
            lambda: directory.has_run("unknown"),
            lambda: directory.has_run(NEIGHBOUR),
            lambda: directory.open_socket(UID),
            lambda: directory.open_file(UID, "absent"),
            lambda: directory.open_socket("unknown"),
            lambda: directory.write_files(UID, ("cache",), {"q.xml": b"1"}),
        ):
            try:
                act()
            except Refused:
                pass
            except NotYet as gap:
                with gap:
                    pass

    attempt()
    before = len(os.listdir("/proc/self/fd"))
    attempt()
    assert len(os.listdir("/proc/self/fd")) == before

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test guest, booted for real under QEMU from the launcher image: the promises of docs/images.md."""

from __future__ import annotations

import http.server
import json
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from seed_image.iso9660 import write_iso

from tests.images.guest_process import GuestProcess

pytestmark = pytest.mark.guest

PROBE = Path(__file__).resolve().parents[2] / "roles/node_kvm/files/kvm_probe.py"
NETWORK = ("-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net")
META_DATA = b'{"instance-id": "i-1", "local-hostname": "web-1"}\n'


def boot_disk(files: Path) -> list[str]:
    return ["-drive", f"file={files}/disk/guest.img,format=raw,if=virtio,snapshot=on"]


def boot_kernel(files: Path) -> list[str]:
    return ["-kernel", f"{files}/boot/vmlinuz", "-initrd", f"{files}/boot/initrd", "-append", "console=ttyS0 quiet"]


def seed(path: Path, user_data: str, bus: str) -> list[str]:
    path.write_bytes(write_iso("cidata", {"meta-data": META_DATA, "user-data": user_data.encode()}))
    drive = f"file={path},format=raw,readonly=on,if=none,id=seed"
    device = {"virtio": "virtio-blk-pci,drive=seed", "sata": "ide-cd,drive=seed", "scsi": "scsi-cd,drive=seed"}[bus]
    return ["-drive", drive, *(["-device", "virtio-scsi-pci"] if bus == "scsi" else []), "-device", device]


@pytest.fixture
def web_server() -> Iterator[int]:
    """A server on the host's loopback, which the guest sees as 10.0.2.2."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from outside\n")

        def log_message(self, *_unused: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def behind_root_ports(*devices: str) -> list[str]:
    """Return the devices, each behind a root port of its own, as libvirt places them."""
    placed = []
    for number, device in enumerate(devices, start=1):
        placed += ["-device", f"pcie-root-port,id=port{number},chassis={number},addr=0x{number + 1:x}"]
        placed += ["-device", f"{device},bus=port{number}"]
    return placed


@pytest.mark.nightly
def test_the_disk_boots_with_61_mib_runs_its_seed_reboots_and_powers_off(
    launcher_root: Path, guest_files: Path, tmp_path: Path, web_server: int
) -> None:
    """61 MiB is what upstream's vm-cirros has."""
    sources = ["-drive", f"file={guest_files}/disk/guest.img,format=raw,if=none,id=boot,snapshot=on"]
    sources += seed(tmp_path / "seed.iso", "#!/bin/sh\nnslookup nowhere.invalid | grep -c NXDOMAIN\n", "virtio")[:2]
    sources += ["-netdev", "user,id=net"]
    kind = "-pci-non-transitional"
    devices = behind_root_ports(
        f"virtio-net{kind},netdev=net", f"virtio-blk{kind},drive=boot,bootindex=1", f"virtio-blk{kind},drive=seed"
    )
    with GuestProcess(launcher_root, tmp_path, ["-cpu", "max", *sources, *devices], memory=61) as guest:
        guest.expect(r"ready hostname=web-1 ip=10\.0\.2\.15 boot=[\d.]+\n")
        guest.expect("user-data exited with")
        assert guest.expect(r"virtops-guest: counter 3\n").start() > guest.console.index("counter 1\n")
        guest.log_in()
        assert "hello from outside" in guest.run(f"wget -q -O - http://10.0.2.2:{web_server}/")
        assert "nameserver 10.0.2.3" in guest.run("cat /etc/resolv.conf")
        before = int(re.findall(r"\n(\d+)\n", guest.run("counter"))[0])
        guest.run("sleep 2")
        assert int(re.findall(r"\n(\d+)\n", guest.run("counter"))[0]) > before, "counts on in silence"

        forks = guest.run("grep processes /proc/stat; sleep 9; grep processes /proc/stat")
        first, last = map(int, re.findall(r"\nprocesses (\d+)", forks))
        assert last - first < 9, "an idle guest starts no program: each costs time under emulation"

        at = guest.type("reboot")
        guest.expect("virtops-guest: going down", after=at)
        guest.expect("virtops-guest: ready", after=at)
        guest.expect("virtops-guest: counter 3", after=at)
        guest.qmp("system_powerdown")
        guest.expect("virtops-guest: power button pressed", after=at)
        assert guest.process.wait(timeout=300) == 0


@pytest.mark.nightly
def test_a_network_without_dhcp_and_a_disk_that_never_answers_do_not_silence_the_guest(
    launcher_root: Path, guest_files: Path, tmp_path: Path
) -> None:
    # The first sectors are for QEMU and the firmware, which look at them too.
    dead = "driver=raw,file.driver=null-co,file.size=1048576,file.read-zeroes=on,if=none,id=dead"
    dead += ",throttling.bps-read=100,throttling.bps-read-max=4000"
    arguments = [*boot_kernel(guest_files), "-netdev", "hubport,id=net,hubid=0", "-device", "virtio-net-pci,netdev=net"]
    arguments += ["-drive", dead, "-device", "virtio-blk-pci,drive=dead"]
    arguments += seed(tmp_path / "seed.iso", "#!/bin/sh\nexit 5\n", "virtio")
    with GuestProcess(launcher_root, tmp_path, arguments) as guest:
        ready = guest.expect(r"ready hostname=virtops-guest ip=none boot=([\d.]+) late=\S+\n")
        assert float(ready[1]) < 60
        guest.expect("virtops-guest: counter 2")
        amounts = ("bps", "bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr")
        guest.qmp("block_set_io_throttle", device="dead", **dict.fromkeys(amounts, 0))
        guest.expect("virtops-guest: user-data exited with 5")


CLOUD_CONFIG = """#cloud-config
hostname: named-by-user-data   # a comment
ssh_authorized_keys:
  - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample user@example
packages: [nginx]
password: "secret: #1"
runcmd:
  - echo "plain: $(hostname)"
  - [echo, "a list:", it's, '$HOME']
  - - echo
    - nested
    - "sequence # here"
  - |
    for word in literal block; do
      echo "word $word"
    done
  - 'echo ''single quoted'''
  - echo folded
    over lines
  - exit 3
"""


def test_kernel_and_initrd_boot_and_apply_cloud_config(launcher_root: Path, guest_files: Path, tmp_path: Path) -> None:
    arguments = [*boot_kernel(guest_files), *NETWORK, *seed(tmp_path / "seed.iso", CLOUD_CONFIG, "virtio")]
    with GuestProcess(launcher_root, tmp_path, arguments) as guest:
        guest.expect("user-data exited with 3")
        guest.expect("ready hostname=named-by-user-data ip=10.0.2.15")
        assert "virtops-guest: seed on /dev/vda instance-id=i-1\n" in guest.console
        assert "virtops-guest: ssh key installed\n" in guest.console
        assert "virtops-guest: warning: #cloud-config key packages is not known" in guest.console
        assert guest.console.count("warning") == 1
        printed = [line for line in guest.console.split("\n") if not line.startswith("virtops-guest:")]
        expected = ["plain: named-by-user-data", "a list: it's $HOME", "nested sequence # here"]
        expected += ["word literal", "word block", "single quoted", "folded over lines"]
        assert [line for line in printed if line in expected] == expected
        guest.expect("login:")
        guest.type("root")
        guest.expect("Password:")
        at = guest.type("secret: #1")
        guest.expect("# ", after=at)
        assert "user@example" in guest.run("cat /root/.ssh/authorized_keys")


@pytest.mark.nightly
@pytest.mark.parametrize("bus", ["sata", "scsi"])
def test_a_script_of_a_seed_on_another_bus_is_run(
    bus: str, launcher_root: Path, guest_files: Path, tmp_path: Path
) -> None:
    script = '#!/bin/bash\necho "script on $(hostname)"\nexit 4\n'
    arguments = [*boot_disk(guest_files), *seed(tmp_path / "seed.iso", script, bus)]
    with GuestProcess(launcher_root, tmp_path, arguments) as guest:
        guest.expect("virtops-guest: user-data exited with 4")
        assert "\nscript on web-1\n" in guest.console
        assert "ready hostname=web-1 ip=none" in guest.console


@pytest.mark.nightly
def test_a_seed_on_a_fat_disk_is_found_and_strange_user_data_is_named(
    launcher_root: Path, guest_files: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "seed"
    folder.mkdir()
    (folder / "meta-data").write_text("instance-id: i-2\nlocal-hostname: 'from-fat'\n")
    (folder / "user-data").write_text("Content-Type: multipart/mixed\n")
    drive = ["-blockdev", f"vvfat,node-name=fat,dir={folder},label=cidata,read-only=on,floppy=off"]
    arguments = [*boot_kernel(guest_files), *drive, "-device", "virtio-blk-pci,drive=fat"]
    with GuestProcess(launcher_root, tmp_path, arguments) as guest:
        guest.expect("ready hostname=from-fat")
        assert "warning: user-data is neither a #! script nor #cloud-config" in guest.console


@pytest.mark.nightly
def test_the_kvm_probe_agrees_with_a_guest_that_is_started_with_kvm(
    launcher_root: Path, guest_files: Path, tmp_path: Path
) -> None:
    """On every machine the probe must agree with `-accel kvm`."""
    answer = json.loads(subprocess.run([sys.executable, "-I", str(PROBE)], capture_output=True, check=True).stdout)
    with GuestProcess(launcher_root, tmp_path, boot_disk(guest_files), accel="kvm") as guest:
        try:
            guest.expect("virtops-guest: ready")
            booted = True
        except AssertionError:
            booted = False
    assert answer["usable"] == booted, answer["reason"]


def test_the_kvm_probes_program_is_right_on_a_processor_that_works(launcher_root: Path, tmp_path: Path) -> None:
    """Under emulation the program reaches its end, in long mode, with the right values in its registers."""
    probe: dict[str, object] = {"__name__": "kvm_probe"}
    exec(compile(PROBE.read_text(), str(PROBE), "exec"), probe)
    disk = bytearray(1 << 20)
    # Read 32 sectors to 0x1000 and two to 0x8000, then jump there.
    loader = "31c08ed88ec08ed0bc007c b82002b90200bb0010b600cd13 b80202b92200bb0080b600cd13 ea00800000"
    code, tables, gdt = probe["PROGRAM"], probe["PAGE_TABLES"], probe["GDT"]
    assert isinstance(code, bytes)
    assert isinstance(gdt, bytes)
    assert isinstance(tables, dict)
    pieces = {0: bytes.fromhex(loader), 510: b"\x55\xaa", 33 * 512: code, 33 * 512 + 0x100: gdt}
    pieces |= {512 + at - 0x1000: struct.pack(f"<{len(entries)}Q", *entries) for at, entries in tables.items()}
    for at, data in pieces.items():
        disk[at : at + len(data)] = data
    (tmp_path / "disk.img").write_bytes(disk)
    drive = ["-drive", f"file={tmp_path}/disk.img,format=raw,if=ide"]
    with GuestProcess(launcher_root, tmp_path, drive, machine="pc") as guest:
        registers = ""
        for _unused in range(600):
            registers = guest.qmp("human-monitor-command", **{"command-line": "info registers"})
            if "HLT=1" in registers and "CS64" in registers:
                break
            threading.Event().wait(0.05)
        assert "RAX=0000000000201000 RBX=000000000000002a" in registers, registers

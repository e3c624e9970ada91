// The machine's private /dev. On a real host udev opens kvm and tun to everybody; container runtimes copy the mode.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

type device struct {
	name         string
	kind         uint32
	major, minor uint32
	mode         uint32
}

const loopDevices = 64

var always = []device{
	{"null", unix.S_IFCHR, 1, 3, 0o666},
	{"zero", unix.S_IFCHR, 1, 5, 0o666},
	{"full", unix.S_IFCHR, 1, 7, 0o666},
	{"random", unix.S_IFCHR, 1, 8, 0o666},
	{"urandom", unix.S_IFCHR, 1, 9, 0o666},
	{"kmsg", unix.S_IFCHR, 1, 11, 0o644},
	{"tty", unix.S_IFCHR, 5, 0, 0o666},
	{"net/tun", unix.S_IFCHR, 10, 200, 0o666},
	{"fuse", unix.S_IFCHR, 10, 229, 0o666},
	{"loop-control", unix.S_IFCHR, 10, 237, 0o660},
}

// ifPresent is made only where the host has it: a device file promises that something answers.
var ifPresent = []string{"kvm", "vhost-net", "vhost-vsock"}

func mountDevices(target string) error {
	// Built beside /dev: the host's is still needed to see which devices there are.
	if err := unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	wanted := append([]device{}, always...)
	for number := range uint32(loopDevices) {
		wanted = append(wanted, device{fmt.Sprintf("loop%d", number), unix.S_IFBLK, 7, number, 0o660})
	}
	for _, name := range ifPresent {
		var found unix.Stat_t
		if unix.Stat("/dev/"+name, &found) == nil && found.Mode&unix.S_IFMT == unix.S_IFCHR {
			wanted = append(wanted, device{name, unix.S_IFCHR, unix.Major(found.Rdev), unix.Minor(found.Rdev), 0o666})
		}
	}
	for _, each := range wanted {
		path := filepath.Join(target, each.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := unix.Mknod(path, each.kind|each.mode, int(unix.Mkdev(each.major, each.minor))); err != nil {
			return fmt.Errorf("make device %s: %w", each.name, err)
		}
	}
	return mountBelowDevices(target)
}

func mountBelowDevices(target string) error {
	for _, link := range [][2]string{
		{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"},
		{"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
	} {
		if err := os.Symlink(link[0], filepath.Join(target, link[1])); err != nil {
			return err
		}
	}
	for _, step := range [][3]string{
		{"devpts", "pts", "newinstance,ptmxmode=0666,mode=0620,gid=5"}, {"tmpfs", "shm", "mode=1777"}, {"mqueue", "mqueue", ""},
	} {
		path := filepath.Join(target, step[1])
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		err := unix.Mount(step[0], path, step[0], unix.MS_NOSUID|unix.MS_NOEXEC, step[2])
		if err != nil && step[1] != "mqueue" { // some kernels are built without message queues
			return fmt.Errorf("mount /dev/%s: %w", step[1], err)
		}
	}
	return nil
}

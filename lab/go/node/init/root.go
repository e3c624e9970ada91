// The machine's root: an overlay on the host's, so that mount points and files made inside never reach the host.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func makeRoot(config Config) error {
	root := filepath.Join(config.Directory, "root")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	others, err := otherMounts()
	if err != nil {
		return err
	}
	layers, err := mountOverlay(config.Directory, root)
	if err != nil {
		return err
	}
	for number, path := range others {
		// A mount below / is not part of the overlay. One that cannot be shown is one the machine does without.
		if target := filepath.Join(root, path); exists(target) {
			showMount(path, target, filepath.Join(layers, "mounts", fmt.Sprint(number)))
		}
	}
	if err := mountKernel(root); err != nil {
		return err
	}
	for _, bind := range config.Binds {
		if err := bindDirectory(bind.Source, filepath.Join(root, bind.Target)); err != nil {
			return err
		}
	}
	if err := enter(root); err != nil {
		return err
	}
	if err := showOwnCgroups(); err != nil {
		return err
	}
	if err := mask(config); err != nil {
		return err
	}
	// A peer group of its own: Bidirectional mounts of Pods work, and nothing reaches the host.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// otherMounts lists the host's mounts of real directories below /, parents first.
func otherMounts() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var paths []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		path := strings.ReplaceAll(fields[4], `\040`, " ")
		top := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)[0]
		switch top {
		case "", "proc", "sys", "dev", "run":
		default:
			paths = append(paths, path)
		}
	}
	return paths, lines.Err()
}

// mountOverlay returns where the upper layers are. It falls back to memory for them where the host's root cannot carry
// one (a container's root is an overlay itself).
func mountOverlay(directory, root string) (string, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	err := overlay("/", root, directory)
	if errors.Is(err, unix.EINVAL) {
		directory = filepath.Join(directory, "memory")
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return "", err
		}
		if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "mode=755"); err != nil {
			return "", err
		}
		err = overlay("/", root, directory)
	}
	if err != nil {
		return "", fmt.Errorf("overlay on the host's root (the kernel needs overlayfs): %w", err)
	}
	return directory, nil
}

func overlay(lower, target, layers string) error {
	upper, work := filepath.Join(layers, "upper"), filepath.Join(layers, "work")
	for _, path := range []string{upper, work} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	return unix.Mount("overlay", target, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+",workdir="+work)
}

// showMount gives the machine a view of a host's mount that it can write to without changing the host's, or, for what
// no overlay can stand on (single files, some file systems), the mount itself, read-only.
func showMount(path, target, layers string) {
	if overlay(path, target, layers) == nil {
		return
	}
	if unix.Mount(path, target, "", unix.MS_BIND, "") == nil {
		_ = unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
}

// mountKernel gives the machine its own /proc, /dev and /run and the host's /sys.
func mountKernel(root string) error {
	for _, step := range []struct {
		source, target, kind string
		flags                uintptr
		options              string
	}{
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"/sys", "/sys", "", unix.MS_BIND | unix.MS_REC, ""},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	} {
		target := filepath.Join(root, step.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(step.source, target, step.kind, step.flags, step.options); err != nil {
			return fmt.Errorf("mount %s: %w", step.target, err)
		}
	}
	return mountDevices(filepath.Join(root, "dev"))
}

func bindDirectory(source, target string) error {
	for _, path := range []string{source, target} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", target, err)
	}
	return nil
}

func enter(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	// Both arguments may be one directory: the old root ends up on top of the new one and is taken off at once.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("take the old root off: %w", err)
	}
	return unix.Chdir("/")
}

// mask covers settings that are the whole host's: the kubelet finds the values it wants and changes nothing.
func mask(config Config) error {
	masks := filepath.Join("/run", "masks")
	if err := os.MkdirAll(masks, 0o755); err != nil {
		return err
	}
	for name, value := range config.Masks {
		target := "/proc/sys/" + name
		if !exists(target) {
			continue
		}
		source := filepath.Join(masks, strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(source, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mask %s: %w", target, err)
		}
	}
	return nil
}

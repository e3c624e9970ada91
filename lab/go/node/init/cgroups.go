// Control groups of both generations: joining the machine's own, and showing them as the root inside.
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

type hierarchy struct {
	path    string
	unified bool   // cgroup2
	options string // what mounts the same v1 hierarchy again
}

// hierarchies lists the mounted cgroup hierarchies as this mount namespace sees them.
func hierarchies() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []hierarchy
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(tail) < 3 || seen[fields[4]] || !strings.HasPrefix(fields[4], "/sys/fs/cgroup") {
			continue
		}
		switch tail[0] {
		case "cgroup":
			found = append(found, hierarchy{path: fields[4], options: mountOptions(tail[2])})
		case "cgroup2":
			found = append(found, hierarchy{path: fields[4], unified: true})
		default:
			continue
		}
		seen[fields[4]] = true
	}
	if len(found) == 0 {
		return nil, errors.New("no cgroup hierarchy below /sys/fs/cgroup: mount one first")
	}
	return found, lines.Err()
}

// mountOptions keeps what names a v1 hierarchy: its controllers, or none and its name.
func mountOptions(super string) string {
	var keep []string
	for _, option := range strings.Split(super, ",") {
		switch {
		case strings.HasPrefix(option, "name="):
			keep = append(keep, "none", option)
		case option == "rw", option == "ro", strings.Contains(option, "="), option == "xattr",
			option == "clone_children", option == "noprefix", option == "seclabel":
		default:
			keep = append(keep, option)
		}
	}
	return strings.Join(keep, ",")
}

// joinCgroups makes group in every hierarchy and moves this process into it.
func joinCgroups(group string) error {
	found, err := hierarchies()
	if err != nil {
		return err
	}
	for _, each := range found {
		if err := makeGroup(each, group); err != nil {
			return fmt.Errorf("cgroup %s: %w", filepath.Join(each.path, group), err)
		}
		procs := filepath.Join(each.path, group, "cgroup.procs")
		if err := os.WriteFile(procs, []byte("0"), 0o644); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// makeGroup goes level by level: a v1 cpuset takes no task before its cpus and mems are set, and a v2 group has
// only the controllers that its parent hands down.
func makeGroup(in hierarchy, group string) error {
	parent := in.path
	for _, part := range strings.Split(group, "/") {
		path := filepath.Join(parent, part)
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if !in.unified {
				inherit(parent, path, name)
			}
		}
		if in.unified {
			handDown(parent)
		}
		parent = path
	}
	return nil
}

func inherit(parent, path, name string) {
	own, err := os.ReadFile(filepath.Join(path, name))
	if err != nil || strings.TrimSpace(string(own)) != "" {
		return
	}
	if value, err := os.ReadFile(filepath.Join(parent, name)); err == nil {
		_ = os.WriteFile(filepath.Join(path, name), value, 0o644)
	}
}

func handDown(group string) {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, name := range strings.Fields(string(controllers)) {
		// One at a time: a controller that cannot be handed down must not keep the others back.
		_ = os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+name), 0o644)
	}
}

// showOwnCgroups mounts every hierarchy again inside the cgroup namespace, so that the machine sees itself at the
// root and its Pods are /kubepods, as on a real node.
func showOwnCgroups() error {
	found, err := hierarchies()
	if err != nil {
		return err
	}
	for _, each := range found {
		kind, options := "cgroup", each.options
		if each.unified {
			kind, options = "cgroup2", ""
		}
		if err := unix.Unmount(each.path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", each.path, err)
		}
		if err := unix.Mount("cgroup", each.path, kind, 0, options); err != nil {
			return fmt.Errorf("mount %s (%s): %w", each.path, options, err)
		}
		if each.unified && len(found) == 1 {
			if err := leaveRootGroup(each.path); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveRootGroup is for cgroup v2 hosts: a group that hands controllers down may hold no process of its own.
func leaveRootGroup(root string) error {
	group := filepath.Join(root, "init")
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0o644); err != nil {
		return err
	}
	handDown(root)
	return nil
}

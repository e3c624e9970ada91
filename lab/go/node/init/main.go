// Init makes one machine of the lab (a node, or the control plane) and is its first process.
//
//	init start CONFIG   join the machine's cgroups, make its namespaces, print {"pid": N} (host's view)
//	init boot CONFIG    what start runs inside: mounts, then supervision of the machine's programs until killed
//
// Addresses, routes and the choice of programs belong to the Python front; it tells them over the control socket.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Config describes one machine; the Python front writes it.
type Config struct {
	Hostname  string            `json:"hostname"`
	Cgroup    string            `json:"cgroup"`    // below the root of every hierarchy, without a leading slash
	Directory string            `json:"directory"` // holds root/, upper/, work/, masks/ and init.log
	Socket    string            `json:"socket"`
	Binds     []Bind            `json:"binds"`
	Masks     map[string]string `json:"masks"`   // files below /proc/sys that show this value and swallow writes
	Sysctls   map[string]string `json:"sysctls"` // per-namespace settings below /proc/sys
}

// Bind is one directory of the host shown inside the machine.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

func main() {
	if len(os.Args) != 3 {
		fail(errors.New("usage: init start|boot CONFIG"))
	}
	config, err := readConfig(os.Args[2])
	if err != nil {
		fail(err)
	}
	switch os.Args[1] {
	case "start":
		err = start(config, os.Args[2])
	case "boot":
		err = boot(config)
	default:
		err = fmt.Errorf("unknown command %q: use start or boot", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "init: %v\n", err)
	os.Exit(1)
}

func readConfig(path string) (Config, error) {
	var config Config
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	return config, err
}

// start runs on the host. Its own cgroup membership is what the child inherits and what becomes the root of the
// child's cgroup namespace.
func start(config Config, path string) error {
	if err := joinCgroups(config.Cgroup); err != nil {
		return err
	}
	log, err := os.OpenFile(config.Directory+"/init.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	report, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	child, err := os.StartProcess("/proc/self/exe", []string{"init", "boot", path}, &os.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []*os.File{null, log, log, theirs},
		Sys: &syscall.SysProcAttr{
			Setsid: true,
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS |
				unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP,
		},
	})
	if err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	theirs.Close()
	line, _ := bufio.NewReader(report).ReadString('\n')
	if line != "ready\n" {
		_ = child.Kill()
		_, _ = child.Wait()
		return fmt.Errorf("%s: %s", config.Hostname, strings.TrimSpace(orElse(line, "died while it booted; see init.log")))
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]int{"pid": child.Pid})
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// boot is PID 1 of the new namespaces.
func boot(config Config) error {
	report := os.NewFile(3, "report")
	unix.CloseOnExec(3)
	tell := func(err error) error {
		fmt.Fprintln(report, strings.ReplaceAll(err.Error(), "\n", " "))
		return err
	}
	unix.Umask(0)
	if err := makeRoot(config); err != nil {
		return tell(err)
	}
	unix.Umask(0o022)
	if err := unix.Sethostname([]byte(config.Hostname)); err != nil {
		return tell(err)
	}
	for name, value := range config.Sysctls {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644); err != nil {
			return tell(err)
		}
	}
	supervisor := newSupervisor()
	if err := supervisor.listen(config.Socket); err != nil {
		return tell(err)
	}
	fmt.Fprintln(report, "ready")
	report.Close()
	supervise(supervisor)
	return nil
}

// supervise reaps every process that ends, the machine's programs as well as orphans, until it is told to stop.
func supervise(supervisor *supervisor) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	tick := time.NewTicker(time.Second) // a SIGCHLD can be merged with the one before it
	for {
		select {
		case got := <-signals:
			if got != syscall.SIGCHLD {
				os.Exit(0)
			}
		case <-tick.C:
		}
		supervisor.reap()
	}
}

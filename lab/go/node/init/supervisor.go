// Supervision: keep the machine's programs running, whoever kills them, and answer the front on a socket.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	firstPause  = 100 * time.Millisecond
	longestWait = 2 * time.Second
	// A program that ran this long was well: its next end is a new story and starts with a short pause again.
	wellAfter = 5 * time.Second
)

// Program is one thing to keep running.
type Program struct {
	Name        string   `json:"name"`
	Argv        []string `json:"argv"`
	Environment []string `json:"environment"`
	Log         string   `json:"log"`
	Remove      []string `json:"remove"` // files to delete before each start, such as a stale socket
}

type entry struct {
	program  Program
	pid      int // 0: not running
	started  time.Time
	restarts int
	pause    time.Duration
	held     bool // stopped on request: stays down until the next ensure
	timer    *time.Timer
}

// State is what the front learns of a program; pids are the machine's own view.
type State struct {
	PID      int  `json:"pid"`
	Restarts int  `json:"restarts"`
	Held     bool `json:"held"`
}

type supervisor struct {
	mutex   sync.Mutex
	entries map[string]*entry
}

func newSupervisor() *supervisor {
	return &supervisor{entries: map[string]*entry{}}
}

// ensure starts what is missing and replaces what has changed; a program that runs as wanted is not touched.
func (s *supervisor) ensure(program Program) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := s.entries[program.Name]
	if found == nil {
		found = &entry{}
		s.entries[program.Name] = found
	}
	same := slices.Equal(found.program.Argv, program.Argv) && slices.Equal(found.program.Environment, program.Environment)
	found.program, found.held = program, false
	if found.pid != 0 {
		if !same {
			_ = syscall.Kill(found.pid, syscall.SIGTERM)
		}
		return
	}
	s.launch(found)
}

func (s *supervisor) hold(name string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := s.entries[name]
	if found == nil {
		return fmt.Errorf("no program %q", name)
	}
	found.held = true
	if found.pid != 0 {
		return syscall.Kill(found.pid, syscall.SIGKILL)
	}
	return nil
}

// launch runs with the mutex held, so that reap cannot see the child's end before its pid is known.
func (s *supervisor) launch(each *entry) {
	if each.timer != nil {
		each.timer.Stop()
		each.timer = nil
	}
	for _, path := range each.program.Remove {
		_ = os.Remove(path)
	}
	pid, err := fork(each.program)
	each.started = time.Now()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: cannot start: %v\n", each.program.Name, err)
		s.again(each)
		return
	}
	each.pid = pid
}

func fork(program Program) (int, error) {
	log, err := os.OpenFile(program.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	return syscall.ForkExec(program.Argv[0], program.Argv, &syscall.ProcAttr{
		Dir:   "/",
		Env:   program.Environment,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// again plans the next start. By now the old process is gone for good, and its ports with it.
func (s *supervisor) again(each *entry) {
	if time.Since(each.started) > wellAfter || each.pause == 0 {
		each.pause = firstPause
	} else {
		each.pause = min(2*each.pause, longestWait)
	}
	each.timer = time.AfterFunc(each.pause, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if each.pid == 0 && !each.held {
			each.restarts++
			s.launch(each)
		}
	})
}

func (s *supervisor) reap() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		for name, each := range s.entries {
			if each.pid != pid {
				continue
			}
			each.pid = 0
			fmt.Fprintf(os.Stderr, "%s %s: ended, status %d, signal %v\n",
				time.Now().UTC().Format(time.RFC3339Nano), name, status.ExitStatus(), status.Signal())
			if !each.held {
				s.again(each)
			}
		}
	}
}

type request struct {
	Operation string    `json:"operation"` // ensure, hold, status
	Programs  []Program `json:"programs"`
	Name      string    `json:"name"`
}

type answer struct {
	Error    string           `json:"error,omitempty"`
	Programs map[string]State `json:"programs"`
}

func (s *supervisor) listen(path string) error {
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				fmt.Fprintf(os.Stderr, "control socket: %v\n", err)
				return
			}
			go s.serve(connection)
		}
	}()
	return nil
}

func (s *supervisor) serve(connection net.Conn) {
	defer connection.Close()
	var asked request
	if err := json.NewDecoder(connection).Decode(&asked); err != nil {
		return
	}
	var problem error
	switch asked.Operation {
	case "ensure":
		for _, program := range asked.Programs {
			s.ensure(program)
		}
	case "hold":
		problem = s.hold(asked.Name)
	case "status":
	default:
		problem = fmt.Errorf("unknown operation %q", asked.Operation)
	}
	reply := answer{Programs: s.states()}
	if problem != nil {
		reply.Error = problem.Error()
	}
	_ = json.NewEncoder(connection).Encode(reply)
}

func (s *supervisor) states() map[string]State {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	states := map[string]State{}
	for name, each := range s.entries {
		states[name] = State{PID: each.pid, Restarts: each.restarts, Held: each.held}
	}
	return states
}

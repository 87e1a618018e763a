package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// patience is how long the program may take to stop if nobody says otherwise. How long a container may take is the
// kubelet's to say: the supervisor itself never loses it.
const patience = time.Duration(math.MaxInt64)

// program is the one program of a container, through all its starts.
type program struct {
	spec process.Spec
	// command is asked at every start.
	command    func() ([]string, error)
	supervisor *process.Supervisor
	journal    *journal
	held       marker
	now        func() time.Time
	// exited is closed when the program ended although nobody asked it to.
	exited chan struct{}

	// forking is held around every start: there is one at a time, none after the container was told to end, and nobody
	// takes a process for an orphan whose id is not known yet.
	forking sync.Mutex
	closing bool
	current *process.Process

	mu    sync.Mutex
	state State
}

// newProgram is a program that has not been started. The caller closes its supervisor.
func newProgram(command func() ([]string, error), stdout, stderr io.Writer, j *journal, held marker) *program {
	p := &program{command: command, journal: j, held: held, now: time.Now, exited: make(chan struct{})}
	p.state = State{State: Waiting, Since: p.now().UTC()}
	p.spec = process.Spec{Stdout: stdout, Stderr: stderr, StopTimeout: patience}
	p.supervisor = process.New(process.Options{OnChange: p.changed})
	return p
}

// changed is told by the supervisor what happens to the process, before anybody who waits for it.
func (p *program) changed(c process.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := lineOf(c)
	p.state.State, p.state.PID = string(c.State), c.PID
	if c.State == process.Exited {
		p.state.State, p.state.PID = line.State, 0 // the journal's word says how it ended
	}
	p.state.Since, p.state.ExitCode = line.Time, line.ExitCode
	p.journal.write(line)
	if c.Cause == process.CauseCrash {
		close(p.exited)
	}
}

// State of this moment.
func (p *program) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// process is the one that a verb is for; without one that has not ended, the verb is refused. A start that goes on comes to its end
// first: its program may be seen to run before its state says so.
func (p *program) process(verb string) (*process.Process, error) {
	p.forking.Lock()
	defer p.forking.Unlock()
	if s := p.State(); !s.alive() {
		return nil, conflict("%s: the program is %s; start it first", verb, s.State)
	}
	return p.current, nil
}

// launch starts a process. The caller holds forking.
func (p *program) launch(ctx context.Context) error {
	argv, err := p.command()
	if err != nil {
		return err
	}
	p.spec.Name, p.spec.Path, p.spec.Args = argv[0], argv[0], argv[1:]
	current, err := p.supervisor.Start(ctx, p.spec)
	if err != nil {
		return err
	}
	p.current = current
	return nil
}

// begin starts the program for the first time, unless it is to stay down or a request has started it already.
func (p *program) begin(ctx context.Context, tell func(string)) error {
	p.forking.Lock()
	defer p.forking.Unlock()
	switch s := p.State().State; {
	case s == Stopped || s == Killed:
		tell("the program is held (" + s + ") since before this container; start it at the control socket")
		return nil
	case p.closing || s != Waiting:
		return nil
	}
	return p.launch(ctx)
}

// restore gives the program the state in which an earlier container left it.
func (p *program) restore() error {
	held, err := p.held.read()
	if err != nil || held == "" {
		return err
	}
	p.forking.Lock()
	defer p.forking.Unlock()
	p.settle(held)
	return nil
}

// settle says that the program is down on request although no process ended. The caller holds forking.
func (p *program) settle(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.State, p.state.Since = state, p.now().UTC()
}

// close asks the program to end, however long it takes, and returns the exit code of the container: 0 if it was held.
func (p *program) close() (int, error) {
	p.forking.Lock()
	p.closing = true
	current, alive := p.current, p.State().alive()
	p.forking.Unlock()
	if current == nil || !alive {
		return 0, nil
	}
	if err := current.Stop(context.Background()); err != nil {
		return 0, fmt.Errorf("end %s: %w", p.spec.Name, err)
	}
	exit, _ := current.Exit()
	return exitCode(exit), nil
}

// grace between SIGTERM and SIGKILL is that of the local backend.
const grace = process.DefaultStopTimeout

// pauseLimit bounds the wait for a process to stand still: only one in uninterruptible I/O takes longer than an instant.
const pauseLimit = 5 * time.Second

// conflict is the answer to a verb that makes no sense in this state.
func conflict(format string, args ...any) error {
	return httpjson.Errorf(http.StatusConflict, format, args...)
}

// start starts the program unless it runs.
func (p *program) start(ctx context.Context) error {
	p.forking.Lock()
	defer p.forking.Unlock()
	switch s := p.State(); {
	case p.closing || s.State == Exited:
		return conflict("start: the container is about to end; ask again when the next one runs")
	case s.State == Paused:
		return conflict("start: the program is paused; resume it, or stop it first")
	case s.State == Running:
		return nil
	}
	if err := p.launch(ctx); err != nil {
		return err
	}
	return p.held.clear()
}

// stop ends the program with SIGTERM, after the grace with SIGKILL, and keeps it down.
func (p *program) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	return p.hold(Stopped, func(current *process.Process) error { return current.Stop(ctx) })
}

// kill ends the program with SIGKILL and keeps it down.
func (p *program) kill() error { return p.hold(Killed, (*process.Process).Kill) }

// hold ends the program, whatever it is doing, and notes first that it stays down: the container may not live to note
// it afterwards. A program that is down already keeps the word for how it ended.
func (p *program) hold(state string, end func(*process.Process) error) error {
	p.forking.Lock()
	current, now := p.current, p.State()
	if now.State == Stopped || now.State == Killed {
		p.forking.Unlock()
		return nil
	}
	err := p.held.set(state)
	if err == nil && now.State == Waiting {
		p.settle(state)
	}
	p.forking.Unlock()
	if err != nil || current == nil {
		return err
	}
	return end(current)
}

// pause freezes the program and its children.
func (p *program) pause(ctx context.Context) error {
	current, err := p.process("pause")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pauseLimit)
	defer cancel()
	return current.Pause(ctx)
}

// resume lets a paused program continue.
func (p *program) resume(context.Context) error {
	current, err := p.process("resume")
	if err != nil {
		return err
	}
	return current.Resume()
}

// MarkerSuffix is added to the path of the control socket: the file says that the program is to stay down when the next container starts.
const MarkerSuffix = ".held"

// marker is a file that says, across restarts of the container, that the program is down on request.
type marker struct {
	path string // empty: there is none, because the control socket is no file
}

func markerOf(control endpoint.Endpoint) marker {
	if !control.IsFile() {
		return marker{}
	}
	return marker{control.Address + MarkerSuffix}
}

// read gives Stopped or Killed, or "" if the program is not held.
func (m marker) read() (string, error) {
	b, err := os.ReadFile(m.path)
	if m.path == "" || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read whether the program is held: %w", err)
	}
	state := strings.TrimSpace(string(b))
	if state != Stopped && state != Killed {
		return "", fmt.Errorf("read whether the program is held: %s holds %.40q: expected %s or %s; remove it", m.path, b, Stopped, Killed)
	}
	return state, nil
}

func (m marker) set(state string) error {
	if m.path == "" {
		return nil
	}
	// A container may be killed at any instant, and half a marker would keep the next one from starting.
	if err := atomicfile.Write(m.path, []byte(state+"\n"), 0o644); err != nil {
		return fmt.Errorf("note that the program is held: %w", err)
	}
	return nil
}

func (m marker) clear() error {
	if err := os.RemoveAll(m.path); err != nil { // an empty path is none
		return fmt.Errorf("note that the program is no longer held: %w", err)
	}
	return nil
}

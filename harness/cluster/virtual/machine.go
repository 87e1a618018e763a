package virtual

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Main is a program: it runs on a host until it ends or ctx does, and returns its exit code. Cancelling ctx is its
// SIGTERM. It must use the host for the network, files, time of day, randomness and the environment, and end all its
// goroutines.
type Main func(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int

// machine runs programs as goroutines, each on a machine of its own of a network in memory. It implements cluster.Machine,
// which on local starts processes.
type machine struct {
	network  *network.Network
	seed     uint64
	programs map[string]Main
	further  []string // arguments of every fake plugin
	clocks   clocks
	files    files
	cluster.Listener

	mu      sync.Mutex
	lives   map[string]int        // how often programs of a name were started
	running []life                // those that have not ended
	address map[string]netip.Addr // of nodes, where clients know API servers by address
}

// harnessHost is the machine of the harness itself.
const harnessHost = "harness"

func newMachine(n *network.Network, seed uint64, programs map[string]Main) *machine {
	return &machine{network: n, seed: seed, programs: programs, lives: map[string]int{}, address: map[string]netip.Addr{}}
}

func (m *machine) setAddress(node string, at netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.address[node] = at
}

// addressesOf is the addresses of a node, which its programs share.
func (m *machine) addressesOf(node string) []netip.Addr {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.address[node]; ok {
		return []netip.Addr{at}
	}
	return nil
}

func (m *machine) Unit(identity history.Process, ready process.Probe, spec func(context.Context) (process.Spec, error)) cluster.Unit {
	return &unit{machine: m, identity: identity, name: cluster.NameOf(identity), ready: ready, spec: spec}
}

// Find implements cluster.Machine: a program's place is its name.
func (m *machine) Find(_ context.Context, program string) (string, error) {
	if m.programs[program] == nil {
		return "", fmt.Errorf("program %s: %w in simulation, which runs what is compiled into it", program, errors.ErrUnsupported)
	}
	return program, nil
}

func (m *machine) Host() host.Host { return m.network.Host(harnessHost) }

func (m *machine) PluginArgs() []string { return m.further }

type life struct {
	*unit
	*run
}

func (m *machine) alive() []life {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(slices.Values(m.running), func(a, b life) int { return strings.Compare(a.host, b.host) })
}

// KillAll ends every program at once, and returns when all have ended.
func (m *machine) KillAll() {
	for _, l := range m.alive() {
		_ = l.unit.kill(l.run) // files of sockets go with the folder
	}
}

// unit is a place for one run of a program at a time.
type unit struct {
	machine  *machine
	identity history.Process
	name     string
	ready    process.Probe
	spec     func(context.Context) (process.Spec, error)

	mu     sync.Mutex
	newest *run // nil before the first
}

var _ cluster.Unit = (*unit)(nil)

// run is one run of a program, on a machine of its own. A new run gets a new machine, as a new process gets new sockets:
// connections of the one before it cannot reach it.
type run struct {
	host string
	pid  int // how many there were of its name, with this one
	end  context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	ended bool
	asked process.Cause // Stop or Kill was called
	code  int
	exits bool // the program has ended itself

	exited process.Exit // how it has ended
	last   string       // what a run that ended by itself wrote

	held bool // paused or silenced
}

// readyPoll is how often a program is asked whether it is ready; it is the resolution of a start in virtual time.
const readyPoll = 20 * time.Millisecond

// stopTimeout is how long a program has to end when it is asked to.
const stopTimeout = process.DefaultStopTimeout

func (u *unit) Start(ctx context.Context) error {
	if u.current() == nil {
		u.machine.boot(u.name)
	}
	r, err := u.launch(ctx)
	if err != nil || u.ready == nil {
		return err
	}
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := u.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("%s ended before it was ready: exit code %d", u.name, r.code)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; last probe: %w", u.name, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// A program takes a moment until it does something: between the end of one and the start of the next there is time.
const (
	// A process takes some milliseconds until it runs (fork, exec, and the runtime of Go). Without them a restart would
	// be over in the instant in which it began, and no other program could notice it.
	leastBoot = 3 * time.Millisecond
	moreBoot  = 7 * time.Millisecond
)

func (m *machine) boot(name string) {
	<-time.After(leastBoot + network.Hash(m.seed).Text(name).Number(time.Now().UnixNano()).Below(moreBoot))
}

// launch begins a run unless there is one.
func (u *unit) launch(ctx context.Context) (*run, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.newest != nil && !u.newest.over() {
		return u.newest, nil
	}
	spec, err := u.spec(ctx)
	if err != nil {
		return nil, err
	}
	main := u.machine.programs[spec.Path]
	if main == nil {
		return nil, fmt.Errorf("start %s: program %s: %w in simulation", u.name, spec.Path, errors.ErrUnsupported)
	}
	log, err := openLog(spec.LogFile)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", u.name, err)
	}
	living, end := context.WithCancel(context.Background())
	r := u.machine.begin(u, end)
	u.newest = r
	h := u.machine.network.Host(r.host)
	h.RandomOf = rand.New(rand.NewPCG(u.machine.seed, uint64(network.Hash(0).Text(u.name).Number(int64(r.pid)))))
	h.WrapFunc = u.machine.network.Wrap(r.host)
	h.AddressesFunc = func() ([]netip.Addr, error) { return u.machine.addressesOf(u.identity.Node), nil }
	h.EnvFunc = func(name string) string { return environment(spec.Env, name) }
	h.AppendFunc = u.machine.files.Append
	h.SeenFunc = func(path string) string { return seen(spec.Mounts, path) }
	h.ClockOf = u.machine.clockOf(u.identity)
	h.ExitFunc = func(code int) {
		r.exit(code)
		u.machine.network.Kill(r.host)
		end()
		runtime.Goexit()
	}
	u.record(r, history.ProcessStarted, "", "")
	go func() {
		defer close(r.done)
		defer end()
		pprof.Do(living, pprof.Labels("program", u.identity.Role), func(ctx context.Context) { // a profile tells programs apart
			u.ended(r, main(ctx, h, spec.Args, log, log), log)
		})
	}()
	return r, nil
}

func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// exit notes with which code the program ends itself.
func (r *run) exit(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code, r.exits = code, true
}

// ended notes the end of a run. What a killed program leaves of its connections is gone already.
func (u *unit) ended(r *run, code int, log *programLog) {
	r.mu.Lock()
	r.ended = true
	if !r.exits {
		r.code = code
	}
	r.exited = process.Exit{Code: r.code, Cause: cmp.Or(r.asked, process.CauseCrash)}
	switch r.exited.Cause {
	case process.CauseCrash:
		r.last = log.last()
	case process.CauseKill:
		r.exited.Code, r.exited.Signal = -1, syscall.SIGKILL
	}
	exit, output := r.exited, r.last
	r.mu.Unlock()
	change := process.Change{Cause: exit.Cause}
	_ = log.file.Close()
	u.machine.network.Kill(r.host)
	u.machine.end(r)
	u.record(r, change.HistoryState(), exit.String(), output)
}

// begin notes a life. The first has the machine of its name.
func (m *machine) begin(u *unit, end context.CancelFunc) *run {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives[u.name]++
	r := &run{host: u.name, pid: m.lives[u.name], end: end, done: make(chan struct{})}
	if r.pid > 1 {
		r.host = fmt.Sprintf("%s-life-%d", u.name, r.pid)
	}
	m.running = append(m.running, life{u, r})
	return r
}

func (m *machine) end(r *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = slices.DeleteFunc(m.running, func(l life) bool { return l.run == r })
}

// environment is the last value of a variable.
func environment(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// seen is where a file is that a program sees below a mount point.
func seen(mounts []process.Mount, path string) string {
	for _, m := range mounts {
		if below, ok := strings.CutPrefix(path, m.At+"/"); ok {
			return filepath.Join(m.From, below)
		}
	}
	return path
}

func (u *unit) record(r *run, state, detail, output string) {
	p := u.identity
	p.PID = r.pid
	p.State, p.Detail, p.Output = state, detail, output
	u.machine.Record(time.Now(), p)
}

// current is the run that there is, or nil.
func (u *unit) current() *run {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.newest == nil || u.newest.over() {
		return nil
	}
	return u.newest
}

// Stop implements cluster.Unit. A program that does not end when it is asked is killed after stopTimeout, as a kubelet does after the grace period.
func (u *unit) Stop(ctx context.Context) error {
	r := u.current()
	if r == nil {
		return nil
	}
	r.ask(process.CauseStop)
	r.end()
	patience := time.NewTimer(stopTimeout)
	defer patience.Stop()
	select {
	case <-r.done:
		return nil
	case <-patience.C:
	case <-ctx.Done():
	}
	return u.Kill(ctx)
}

// Kill implements cluster.Unit. A goroutine cannot be killed, so the machine is isolated first: what the program does when
// its context ends reaches nothing. Files of its sockets stay, as after SIGKILL.
func (u *unit) Kill(context.Context) error {
	if r := u.current(); r != nil {
		return u.kill(r)
	}
	return nil
}

// kill waits until the program has ended. One that ignores its context would stop the run here, in real time as well.
func (u *unit) kill(r *run) error {
	r.ask(process.CauseKill)
	left := u.machine.network.Isolate(r.host)
	r.end()
	<-r.done
	return u.machine.network.Release(r.host, left)
}

// ask notes why a run ends; the first reason stands, unless it is killed after all.
func (r *run) ask(c process.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == "" || c == process.CauseKill {
		r.asked = c
	}
}

// errPause is why a program that does things by itself cannot be paused.
var errPause = fmt.Errorf("pause: %w in simulation: a goroutine cannot be stopped. Silence cuts it off from other machines, while its timers go on", errors.ErrUnsupported)

// Pausable reports whether programs of a role can be paused. They are those that only answer requests: their clients
// cannot tell a machine whose connections stand still from a process that is stopped. A program that acts by timers (a
// reporter) would go on.
func Pausable(role string) bool {
	return slices.Contains([]string{history.RoleEtcd, history.RoleAPIServer, history.RolePlugin, history.RoleRemoteKMS}, role)
}

func (u *unit) Pause(context.Context) error {
	if !Pausable(u.identity.Role) {
		return errPause
	}
	u.hold(true, history.ProcessPaused, u.machine.network.Freeze)
	return nil
}

func (u *unit) Silence(context.Context) error {
	u.hold(true, history.ProcessSilenced, u.machine.network.Silence)
	return nil
}

// release ends what holds a machine back.
func (m *machine) release(host string, _ bool) {
	m.network.Freeze(host, false)
	m.network.Silence(host, false)
}

func (u *unit) Resume(context.Context) error {
	u.hold(false, history.ProcessResumed, u.machine.release)
	return nil
}

// hold pauses or silences the run, or ends that. Only a change is recorded.
func (u *unit) hold(held bool, state string, hold func(host string, on bool)) {
	r := u.current()
	if r == nil {
		return
	}
	r.mu.Lock()
	changes := r.held != held
	r.held = held
	r.mu.Unlock()
	if changes {
		hold(r.host, held)
		u.record(r, state, "", "")
	}
}

func (u *unit) Status() cluster.Status {
	u.mu.Lock()
	r := u.newest
	u.mu.Unlock()
	if r == nil {
		return cluster.Status{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.ended && r.held:
		return cluster.Status{Phase: cluster.Paused, PID: r.pid}
	case !r.ended:
		return cluster.Status{Phase: cluster.Running, PID: r.pid}
	}
	return cluster.Status{Phase: cluster.Ended, PID: r.pid, Exit: r.exited, Crashed: r.exited.Cause == process.CauseCrash, Output: r.last}
}

// programLog is the output of a program, in a file, and the end of it.
type programLog struct {
	file *os.File

	mu  sync.Mutex
	end []byte
}

// keptOutput is what is kept of a program's last words, in bytes.
const keptOutput = 400

func openLog(name string) (*programLog, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &programLog{file: file}, nil
}

func (l *programLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, b...)
	if len(l.end) > 2*keptOutput {
		l.end = append([]byte(nil), l.end[len(l.end)-keptOutput:]...)
	}
	return l.file.Write(b)
}

func (l *programLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.end
	if len(end) > keptOutput {
		end = end[len(end)-keptOutput:]
		if i := bytes.IndexByte(end, '\n'); i >= 0 {
			end = end[i+1:]
		}
	}
	return strings.TrimSpace(string(end))
}

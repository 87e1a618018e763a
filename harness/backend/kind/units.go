package kind

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/supervisor"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// unitKey names a unit: a program below kmsharness-supervisor in a container, and the folder of this machine that its files are in.
type unitKey struct{ dir, unit string }

// pod is the folder of the files of the pod that the unit is in.
func (k unitKey) pod() string {
	if isUnderTest(k.unit) {
		return filepath.Dir(k.dir)
	}
	return k.dir
}

// program is the program of the system under test that a container's journal is about; false: none is in it.
type program = func() (history.Process, bool)

// unitState is a row of the table of units: what should run in a container and where, and what does.
type unitState struct {
	unitKey
	node    string          // that its container is on
	who     program         // that runs in it
	process history.Process // what was recorded last; it says since when
	// lostWith is the role (history.RoleNode, history.RolePod) whose end ended the unit, which its start brings back; else empty.
	lostWith string
	frozen   bool // paused with its node
	absent   bool // its pod has no container for it
}

// lives reports whether the process exists.
func (s *unitState) lives() bool {
	switch s.process.State {
	case history.ProcessStarted, history.ProcessReady, history.ProcessPaused, history.ProcessResumed:
		return true
	}
	return false
}

// units is the table of all units of a cluster. The journals of the supervisors fill it. A supervisor that dies with its container cannot write that
// its program died: what ends the container finds here which units that concerns.
type units struct {
	sink     func(at time.Time, p history.Process)
	journals *tail.Set
	stop     context.CancelFunc
	tailing  sync.WaitGroup

	mu   sync.Mutex
	rows map[unitKey]*unitState
}

func newUnits(h *cluster.Host) *units {
	return &units{sink: h.Record, journals: tail.NewSet(), rows: map[unitKey]*unitState{}}
}

// tailEvery is how often the journals of the supervisors are read.
const tailEvery = 25 * time.Millisecond

// startTailing reads the journals until close.
func (u *units) startTailing() {
	ctx, cancel := context.WithCancel(context.Background())
	u.stop = cancel
	u.tailing.Go(func() {
		ticker := time.NewTicker(tailEvery)
		defer ticker.Stop()
		u.journals.Run(ctx, ticker.C)
	})
}

func (u *units) close() {
	if u.stop != nil {
		u.stop()
		u.tailing.Wait()
		_ = u.journals.Close() // what they hold belongs to no run any more
	}
}

// follow makes a unit on a node known and passes on what its journal says of the program in it: one may come after another. What is
// about none is not passed on.
func (u *units) follow(k unitKey, node string, who program) error {
	u.mu.Lock()
	row := u.rows[k]
	if row == nil {
		row = &unitState{unitKey: k}
		u.rows[k] = row
	}
	row.node, row.who = node, who
	u.mu.Unlock()
	return u.journals.Add(filepath.Join(k.dir, supervisorJournal(k.unit)), tail.FromStart, func(line []byte) error {
		at, p, err := supervisor.DecodeLine(line)
		if err != nil {
			return err
		}
		if identity, any := u.program(k, who)(); any {
			identity.PID, identity.State, identity.Detail = p.PID, p.State, p.Detail
			u.record(at, k, identity)
		}
		return nil
	})
}

// program is what runs in a unit now; the last one that did if the unit was forgotten.
func (u *units) program(k unitKey, last program) program {
	u.mu.Lock()
	defer u.mu.Unlock()
	if row := u.rows[k]; row != nil {
		return row.who
	}
	return last
}

// followOne is follow for a unit that is always of one identity.
func (u *units) followOne(k unitKey, node string, identity history.Process) error {
	return u.follow(k, node, func() (history.Process, bool) { return identity, true })
}

// record notes a change and passes it on. A unit that was forgotten stays so.
func (u *units) record(at time.Time, k unitKey, p history.Process) {
	u.mu.Lock()
	if row := u.rows[k]; row != nil {
		row.process = p
	}
	u.mu.Unlock()
	u.sink(at, p)
}

// forget drops units whose containers are gone for good.
func (u *units) forget(which func(*unitState) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for k, row := range u.rows {
		if which(row) {
			delete(u.rows, k)
		}
	}
}

// take changes the units that are meant and returns them as they were, sorted by name; change may be nil.
func (u *units) take(meant func(*unitState) bool, change func(*unitState)) []unitState {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []unitState
	for _, row := range u.rows {
		if meant(row) {
			all = append(all, *row)
			if change != nil {
				change(row)
			}
		}
	}
	slices.SortFunc(all, func(a, b unitState) int { return cmp.Compare(a.unit, b.unit) })
	return all
}

// onNode are the units on a node that have a process; inDir, those of a pod, by the folder of its files.
func onNode(node string) func(*unitState) bool {
	return func(s *unitState) bool { return s.node == node && s.lives() }
}

func inDir(dir string) func(*unitState) bool {
	return func(s *unitState) bool { return s.pod() == dir && s.lives() }
}

// lose notes of the units which a node or a pod takes along that its start brings them back, and returns them.
func (u *units) lose(role string, meant func(*unitState) bool) []unitState {
	return u.take(meant, func(s *unitState) { s.lostWith, s.frozen = role, false })
}

// regain returns the units that the end of a node, or of the pod on it, took along, and forgets that it did.
func (u *units) regain(role, node string) []unitState {
	lost := func(s *unitState) bool { return s.lostWith == role && s.node == node }
	return u.take(lost, func(s *unitState) { s.lostWith = "" })
}

// killed records that the units that are meant ended without a chance to write it. What they did write comes first.
func (u *units) killed(at time.Time, meant func(*unitState) bool, detail string) error {
	if err := u.journals.Poll(); err != nil {
		return err
	}
	u.recordAll(at, u.take(meant, nil), history.ProcessKilled, detail)
	return nil
}

func (u *units) recordAll(at time.Time, all []unitState, state, detail string) {
	for _, s := range all {
		s.process.State, s.process.Detail = state, detail
		u.record(at, s.unitKey, s.process)
	}
}

// powerLost is how a unit ended that its node took along.
const powerLost = "its node lost its power"

// nodeDied notes and records that all units of a node ended with it.
func (u *units) nodeDied(node string, at time.Time) error {
	if err := u.journals.Poll(); err != nil {
		return err
	}
	u.recordAll(at, u.lose(history.RoleNode, onNode(node)), history.ProcessKilled, powerLost)
	return nil
}

// freeze records that the units of a node stand still with it; thaw, that they go on. What was paused on its own stays paused.
func (u *units) freeze(node string, at time.Time) {
	running := func(s *unitState) bool {
		return s.node == node && s.lives() && s.process.State != history.ProcessPaused
	}
	u.recordAll(at, u.take(running, func(s *unitState) { s.frozen = true }), history.ProcessPaused, "with its node")
}

func (u *units) thaw(node string, at time.Time) {
	frozen := func(s *unitState) bool { return s.node == node && s.frozen }
	u.recordAll(at, u.take(frozen, func(s *unitState) { s.frozen = false }), history.ProcessResumed, "with its node")
}

// stateTimeout bounds the question how a unit is; its answer comes within a millisecond, unless its container is gone.
const stateTimeout = 2 * time.Second

// readyPoll is how often a starting unit is asked whether it answers.
const readyPoll = 50 * time.Millisecond

// held is a cluster.Unit below the supervisor in a container.
type held struct {
	unitKey
	client supervisor.Client
	// command is asked at every start and written where the supervisor reads it; nil: the container knows it.
	command func(context.Context) ([]string, error)
	ready   func(context.Context) error
	// absent reports whether the pod has no container for the unit, which has ended then; nil: it always has.
	absent func() bool
}

var _ cluster.Unit = (*held)(nil)

func newHeld(k unitKey) (*held, error) {
	c, err := supervisor.NewClient("unix://" + filepath.Join(k.dir, supervisorSocket(k.unit)))
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", k.unit, err)
	}
	return &held{unitKey: k, client: c}, nil
}

// Start implements cluster.Unit.
func (u *held) Start(ctx context.Context) error {
	if u.command != nil && !u.Status().Running() {
		if err := u.writeCommand(ctx); err != nil {
			return err
		}
	}
	if _, err := u.client.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", u.unit, err)
	}
	if u.ready == nil {
		return nil
	}
	return until(ctx, readyPoll, "start "+u.unit, u.ready)
}

// writeCommand writes the command of a program where its supervisor in the container reads it. A file changes without a new pod.
func (u *held) writeCommand(ctx context.Context) error {
	words, err := u.command(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(words)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(u.dir, commandFile(u.unit)), text, 0o644); err != nil {
		return fmt.Errorf("command of %s: %w", u.unit, err)
	}
	return nil
}

// Stop implements cluster.Unit, and so do the others.
func (u *held) Stop(ctx context.Context) error   { return u.do(ctx, "stop", u.client.Stop) }
func (u *held) Kill(ctx context.Context) error   { return u.do(ctx, "kill", u.client.Kill) }
func (u *held) Pause(ctx context.Context) error  { return u.do(ctx, "pause", u.client.Pause) }
func (u *held) Resume(ctx context.Context) error { return u.do(ctx, "resume", u.client.Resume) }

func (u *held) do(ctx context.Context, verb string, act func(context.Context) (supervisor.State, error)) error {
	if u.absent != nil && u.absent() {
		return nil
	}
	if _, err := act(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", verb, u.unit, err)
	}
	return nil
}

// state asks the supervisor, which answers at once if it is there.
func (u *held) state(ctx context.Context) (supervisor.State, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	return u.client.State(ctx)
}

// awaitSupervisor returns when the supervisor of the unit's container answers.
func (u *held) awaitSupervisor(ctx context.Context) error {
	return until(ctx, readyPoll, "wait for the container of "+u.unit, func(ctx context.Context) error {
		_, err := u.state(ctx)
		return err
	})
}

// Status implements cluster.Unit. A unit whose container is gone has crashed: nobody ended it through the supervisor.
func (u *held) Status() cluster.Status {
	s, err := u.state(context.Background())
	if err != nil {
		return cluster.Status{Phase: cluster.Ended, Crashed: true}
	}
	switch s.State {
	case supervisor.Running:
		return cluster.Status{Phase: cluster.Running, PID: s.PID}
	case supervisor.Paused:
		return cluster.Status{Phase: cluster.Paused, PID: s.PID}
	case supervisor.Waiting:
		return cluster.Status{Phase: cluster.Never}
	default:
		return cluster.Status{Phase: cluster.Ended, Crashed: s.State == supervisor.Exited}
	}
}

// broken is a unit that cannot do anything, for a reason.
type broken struct{ err error }

func (b broken) Start(context.Context) error  { return b.err }
func (b broken) Stop(context.Context) error   { return b.err }
func (b broken) Kill(context.Context) error   { return b.err }
func (b broken) Pause(context.Context) error  { return b.err }
func (b broken) Resume(context.Context) error { return b.err }
func (b broken) Status() cluster.Status       { return cluster.Status{} }

// makeUnit makes the unit of a program of the system under test, which is asked for its command at every start.
type makeUnit = func(history.Process, func(context.Context) (cluster.Command, error)) cluster.Unit

// setAbsent notes whether a pod has no container for a unit.
func (u *units) setAbsent(k unitKey, absent bool) {
	u.take(func(s *unitState) bool { return s.unitKey == k }, func(s *unitState) { s.absent = absent })
}

func (u *units) absent(k unitKey) bool {
	return len(u.take(func(s *unitState) bool { return s.unitKey == k && s.absent }, nil)) > 0
}

// placeOf makes units in a container of a node.
func (u *units) placeOf(k unitKey, node string) makeUnit {
	return func(identity history.Process, command func(context.Context) (cluster.Command, error)) cluster.Unit {
		one, err := newHeld(k)
		if err == nil {
			one.command, one.absent = argumentsOf(command), func() bool { return u.absent(k) }
			err = u.followOne(k, node, identity)
		}
		if err != nil {
			return broken{err}
		}
		return one
	}
}

// argumentsOf are the words that the supervisor runs.
func argumentsOf(command func(context.Context) (cluster.Command, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		c, err := command(ctx)
		return append([]string{inImage(c.Program)}, c.Args...), err
	}
}

// until asks until the answer is nil.
func until(ctx context.Context, every time.Duration, what string, is func(context.Context) error) error {
	var last error
	err := poll.Until(ctx, every, func() (bool, error) {
		last = is(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, err, last)
	}
	return nil
}

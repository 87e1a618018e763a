package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/hold"
	holdjournal "github.com/kmsharness/kmsharness/harness/record/hold"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// ledger knows what was told last of every unit below hold. A hold that dies with its container cannot tell that its program
// did; who ended the container finds here whom that concerns. The zero value is empty.
type ledger struct {
	mu   sync.Mutex
	last map[unitOn]history.Process
}

// unitOn is a unit by the folder of this machine that its files are in.
type unitOn struct{ dir, unit string }

// note keeps what is told of a unit.
func (l *ledger) note(k unitOn, p history.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[unitOn]history.Process{}
	}
	l.last[k] = p
}

// forget drops the units of a folder that is gone.
func (l *ledger) forget(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.last {
		if k.dir == dir {
			delete(l.last, k)
		}
	}
}

// entry is a unit with what was told of it last.
type entry struct {
	unitOn
	process history.Process
}

// living are the units, of those that are meant, that have a process, sorted by name.
func (l *ledger) living(meant func(unitOn) bool) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []entry
	for k, p := range l.last {
		if lives(p.State) && meant(k) {
			all = append(all, entry{k, p})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.unit, b.unit) })
	return all
}

// lives says whether a process of which this was told last exists.
func lives(state string) bool {
	switch state {
	case history.ProcessStarted, history.ProcessReady, history.ProcessPaused, history.ProcessResumed:
		return true
	}
	return false
}

// inPod says whether a unit is in the API server's pod; the others of a node are aggregators.
func inPod(unit string) bool {
	return unit == unitAPIServer || unit == unitReporter || strings.HasPrefix(unit, unitOfPlugin(""))
}

// livingIn are the units of the pod of an API server on a node that have a process.
func (p *plane) livingIn(node, apiServer string) []entry {
	dir := p.layout.node(node).pod(apiServer).dir
	return p.ledger.living(func(k unitOn) bool { return k.dir == dir && inPod(k.unit) })
}

// living are the units on a node that have a process: those of its API servers' pods, and the aggregators whose pods are there.
func (p *plane) living(node string) []entry {
	own := []string{p.layout.node(node).state()}
	for _, f := range p.fleets {
		own = append(own, p.layout.node(node).pod(f.Stand.APIServer).dir)
	}
	there := map[string]bool{}
	for _, s := range p.allSeats() {
		if pod, at := s.pod(); at == node {
			there[unitOfAggregator(pod)] = true
		}
	}
	return p.ledger.living(func(k unitOn) bool { return slices.Contains(own, k.dir) || k.dir == p.layout.shared() && there[k.unit] })
}

// absences are the units that went away with a node or a pod, for its return.
type absences struct {
	lost   map[[2]string][]entry // by role and node
	frozen map[string][]entry    // by node
}

// noteLost notes the units that ended with a node or a pod; those of an end that was noted already stay.
func (p *plane) noteLost(role, node string, lost []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.absent.lost == nil {
		p.absent.lost = map[[2]string][]entry{}
	}
	k := [2]string{role, node}
	p.absent.lost[k] = append(p.absent.lost[k], lost...)
	delete(p.absent.frozen, node)
}

func (p *plane) takeLost(role, node string) []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := [2]string{role, node}
	lost := p.absent.lost[k]
	delete(p.absent.lost, k)
	return lost
}

func (p *plane) noteFrozen(node string, frozen []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.absent.frozen == nil {
		p.absent.frozen = map[string][]entry{}
	}
	p.absent.frozen[node] = frozen
}

func (p *plane) takeFrozen(node string) []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	frozen := p.absent.frozen[node]
	delete(p.absent.frozen, node)
	return frozen
}

const powerLost = "its node lost its power"

// diedAt is when the container of a node ended.
func (p *plane) diedAt(ctx context.Context, node string) (time.Time, error) {
	text, err := docker(ctx, "inspect", "--format", "{{.State.FinishedAt}}", p.container(node))
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("when node %s ended: %w", node, err)
	}
	return at, nil
}

// lose tells of the units that lived on a node and were ended without a chance to tell it themselves, and notes them for the
// next start.
func (p *plane) lose(role, node string, at time.Time) error {
	if err := p.journals.Poll(); err != nil { // what they did tell comes first
		return err
	}
	lost := p.living(node)
	for _, e := range lost {
		p.tellUnit(at, e, history.ProcessKilled, powerLost)
	}
	p.noteLost(role, node, lost)
	return nil
}

func (p *plane) tellUnit(at time.Time, e entry, state, detail string) {
	told := e.process
	told.State, told.Detail = state, detail
	p.ledger.note(e.unitOn, told)
	p.Tell(at, told)
}

// follow passes what a unit's journal tells on to the listener.
func (p *plane) follow(dir, unit string, identity history.Process) error {
	return p.followWhoever(dir, unit, func() (history.Process, bool) { return identity, true })
}

// followWhoever is follow for a unit in which one program comes after another. What is about none of them is not passed on.
func (p *plane) followWhoever(dir, unit string, who func() (history.Process, bool)) error {
	return p.journals.Add(filepath.Join(dir, holdJournal(unit)), tail.FromStart, func(line []byte) error {
		change, err := holdjournal.Decode(line)
		if err != nil {
			return err
		}
		identity, any := who()
		if !any {
			return nil
		}
		switch told := change.Of(identity).(type) {
		case *history.Stall:
			p.TellStall(*told)
		case *history.Process:
			p.ledger.note(unitOn{dir, unit}, *told)
			p.Tell(change.At, *told)
		}
		return nil
	})
}

// tailEvery is how often the journals of hold are read.
const tailEvery = 25 * time.Millisecond

// startTailing reads the journals until Close.
func (p *plane) startTailing() {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.tailing.Go(func() {
		ticker := time.NewTicker(tailEvery)
		defer ticker.Stop()
		p.journals.Run(ctx, ticker.C)
	})
}

// stateTimeout bounds the question how a unit is; its answer comes within a millisecond, unless its container is gone.
const stateTimeout = 2 * time.Second

// readyPoll is how often a starting unit is asked whether it answers.
const readyPoll = 50 * time.Millisecond

// held is a Unit below hold in a container.
type held struct {
	name   string
	client hold.Client
	// command is asked at every start and written where hold reads it; nil: the container knows it.
	command func(context.Context) ([]string, error)
	file    string // of the command, on this machine
	ready   func(context.Context) error
}

var _ live.Unit = (*held)(nil)

// newHeld is the unit of a name in a folder of this machine.
func newHeld(dir, name string) (*held, error) {
	c, err := hold.NewClient("unix://" + filepath.Join(dir, holdSocket(name)))
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", name, err)
	}
	return &held{name: name, client: c, file: filepath.Join(dir, commandFile(name))}, nil
}

// Start implements live.Unit.
func (u *held) Start(ctx context.Context) error {
	if u.command != nil && !u.Status().Lives() {
		if err := u.writeCommand(ctx); err != nil {
			return err
		}
	}
	if _, err := u.client.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", u.name, err)
	}
	if u.ready == nil {
		return nil
	}
	return until(ctx, readyPoll, "start "+u.name, u.ready)
}

func (u *held) writeCommand(ctx context.Context) error {
	words, err := u.command(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(words)
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.file, text, 0o644); err != nil {
		return fmt.Errorf("command of %s: %w", u.name, err)
	}
	return nil
}

// Stop implements live.Unit.
func (u *held) Stop(ctx context.Context) error { return u.do(ctx, "stop", u.client.Stop) }

// Kill implements live.Unit.
func (u *held) Kill(ctx context.Context) error { return u.do(ctx, "kill", u.client.Kill) }

// Pause implements live.Unit.
func (u *held) Pause(ctx context.Context) error { return u.do(ctx, "pause", u.client.Pause) }

// Resume implements live.Unit.
func (u *held) Resume(ctx context.Context) error { return u.do(ctx, "resume", u.client.Resume) }

func (u *held) do(ctx context.Context, verb string, act func(context.Context) (hold.State, error)) error {
	if _, err := act(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", verb, u.name, err)
	}
	return nil
}

// Status implements live.Unit. A unit whose container is gone has crashed: nobody ended it through hold.
func (u *held) Status() live.Status {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	s, err := u.client.State(ctx)
	if err != nil {
		return live.Status{Phase: live.Ended, Crashed: true}
	}
	switch s.State {
	case hold.Running:
		return live.Status{Phase: live.Running, PID: s.PID}
	case hold.Paused:
		return live.Status{Phase: live.Paused, PID: s.PID}
	case hold.Waiting:
		return live.Status{Phase: live.Never}
	default:
		return live.Status{Phase: live.Ended, Crashed: s.State == hold.Exited}
	}
}

// until asks until the answer is nil.
func until(ctx context.Context, every time.Duration, what string, is func(context.Context) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := is(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		}
	}
}

// unitOf makes units for a program of the system under test in a container of a node.
func (p *plane) unitOf(dir, name string) func(history.Process, func(context.Context) (live.Command, error)) live.Unit {
	return func(identity history.Process, command func(context.Context) (live.Command, error)) live.Unit {
		u, err := newHeld(dir, name)
		if err != nil {
			return broken{err}
		}
		u.command = wordsOf(command)
		if err := p.follow(dir, name, identity); err != nil {
			return broken{err}
		}
		return u
	}
}

// wordsOf are the words that hold runs.
func wordsOf(command func(context.Context) (live.Command, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		c, err := command(ctx)
		return append([]string{inImage(c.Program)}, c.Args...), err
	}
}

// contained returns an error if the image of a program of this project does not have another one.
func contained(program, replaced string) error {
	if inImage(program) == inImage(replaced) {
		return nil
	}
	return fmt.Errorf("it would run in this project's image, which has %s only: expected that, or for a reporter of your own --reporter-image", inImage(replaced))
}

// inImage is where the images of this project have their program.
func inImage(program string) string {
	if program == "" || program[0] == '/' {
		return program
	}
	return "/" + program
}

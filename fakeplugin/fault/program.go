package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// MaxActive bounds the faults of one program: more than anybody combines on purpose.
const MaxActive = 64

// Program is the faults in force on one plugin instance. It is safe for concurrent use.
type Program struct {
	clock clock.PassiveClock
	quiet atomic.Bool // no fault at all: the answer to most calls, and it must cost nothing

	mu       sync.Mutex
	rng      *rand.Rand
	next     int
	active   []Active
	released map[string]chan struct{} // by id; closed when the fault ends
}

// NewProgram is an empty program. The seed decides every draw (probability, delays).
func NewProgram(c clock.PassiveClock, seed uint64) *Program {
	p := &Program{clock: c, rng: rand.New(rand.NewPCG(seed, 0)), released: map[string]chan struct{}{}}
	p.quiet.Store(true)
	return p
}

// Inject puts f in force.
func (p *Program) Inject(f Fault) (Active, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.definition.Name == "" {
		return Active{}, fmt.Errorf("inject: the fault was not made by Parse")
	}
	p.expire()
	if len(p.active) >= MaxActive {
		return Active{}, fmt.Errorf("inject %s: %d faults are in force already, release some", f.Name, MaxActive)
	}
	p.next++
	a := Active{ID: "f" + strconv.Itoa(p.next), Fault: f, Injected: p.clock.Now()}
	p.active = append(p.active, a)
	p.released[a.ID] = make(chan struct{})
	p.quiet.Store(false)
	return a, nil
}

// Release ends the faults that match and returns them. A call that hangs in one of them goes on.
func (p *Program) Release(match func(Active) bool) []Active {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.release(match)
}

func (p *Program) release(match func(Active) bool) []Active {
	var ended []Active
	p.active = slices.DeleteFunc(p.active, func(a Active) bool {
		if !match(a) {
			return false
		}
		ended = append(ended, a)
		close(p.released[a.ID])
		delete(p.released, a.ID)
		return true
	})
	p.quiet.Store(len(p.active) == 0)
	return ended
}

// ByID, ByName and All are what a release usually matches.
func ByID(id string) func(Active) bool { return func(a Active) bool { return a.ID == id } }
func ByName(name string) func(Active) bool {
	return func(a Active) bool { return a.Fault.Name == name }
}
func All(Active) bool { return true }

// Expire releases the faults whose time is over, and says when the next one's will be.
func (p *Program) Expire() (next time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire()
	for _, a := range p.active {
		if end := a.Injected.Add(a.Fault.For); a.Fault.For > 0 && (!ok || end.Before(next)) {
			next, ok = end, true
		}
	}
	return next, ok
}

func (p *Program) expire() {
	now := p.clock.Now()
	p.release(func(a Active) bool { return a.Over(now) })
}

// List is the faults in force, in the order in which they were injected; those that are spent are among them until
// they are released, because a call may still hang in one.
func (p *Program) List() []Active {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	return slices.DeleteFunc(slices.Clone(p.active), func(a Active) bool { return a.Over(now) })
}

// Plan decides what goes wrong with one call of m.
func (p *Program) Plan(m Method) Plan {
	if p.quiet.Load() {
		return Plan{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := Decide(p.active, m, p.clock.Now(), p.rng)
	for i, hold := range plan.Holds {
		if !hold.Deadline {
			plan.Holds[i].Released = p.released[hold.ID]
		}
	}
	return plan
}

// Socket decides what the socket looks like.
func (p *Program) Socket() Socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return DecideSocket(p.active, p.clock.Now())
}

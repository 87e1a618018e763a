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

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// MaxActive bounds the faults of one program: more than anybody combines on purpose.
const MaxActive = 64

// Program is the faults in force on one plugin instance. It is safe for concurrent use.
type Program struct {
	clock clock.PassiveClock
	quiet atomic.Bool // no fault and no profile at all: the answer to most calls, and it must cost nothing

	mu       sync.Mutex
	rng      *rand.Rand
	next     int
	active   []Active
	released map[string]chan struct{} // by id; closed when the fault ends
	profile  *profile.Profile         // may be nil
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
	f, err := f.ofProvider(p.profile)
	if err != nil {
		return Active{}, fmt.Errorf("inject: %w", err)
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

// SetProfile gives the plugin the failures and the latencies of a provider from now on; nil takes them away. Faults that are in
// force stay.
func (p *Program) SetProfile(of *profile.Profile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.profile = of
	p.hush()
}

// hush notes whether there is anything that a call can meet.
func (p *Program) hush() { p.quiet.Store(len(p.active) == 0 && p.profile == nil) }

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
	p.hush()
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
	usual, takes := latency(p.profile, m, p.rng)
	plan := Decide(p.active, m, p.clock.Now(), p.rng)
	for i, hold := range plan.Holds {
		if !hold.Deadline {
			plan.Holds[i].Released = p.released[hold.ID]
		}
	}
	if takes { // nothing releases it: that is how long the provider takes
		plan.Holds = append([]Wait{usual}, plan.Holds...)
	}
	return plan
}

// Socket decides what the socket looks like.
func (p *Program) Socket() Socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return DecideSocket(p.active, p.clock.Now())
}

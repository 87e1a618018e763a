package swarm

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

const (
	// mostSteps of all rows together: a scenario may have ten thousand.
	mostSteps = 9000
	// mostBrief is how long a fault lasts, in milliseconds, that something else waits for: starting an API server has a minute.
	mostBrief = 20_000
	// rareEpisodes is how many of what should be rare fit into a seed with the longest gaps; there are about twice as many.
	rareEpisodes = 6
	// redraws of an episode until one comes that the seed's mood allows.
	redraws = 12
)

// mood is how much goes wrong in a seed, from almost calm to a storm, and what. Seeds that never use most kinds of faults
// find what a mixture of everything hides.
type mood struct {
	seed         int64
	disturbances int
	gap          time.Duration // between two episodes of a row, at most
	share        uint32        // of the kinds of faults that may happen, in percent
}

// longDrawing draws a seed of hours.
type longDrawing struct{ *drawing }

func (d longDrawing) mood() mood {
	i := d.plan.Timing.Interval
	return mood{seed: d.seed, disturbances: pick(d.rng, 1, 2, 3, 4, 6, 9), share: uint32(pick(d.rng, 15, 30, 50, 75, 100)),
		gap: time.Duration(pick(d.rng, 1, 4, 10, 30, 90)) * i}
}

// allows draws by the kind's name, so that it does not matter which kinds there are besides.
func (m mood) allows(kind string) bool {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%d %s", m.seed, kind) // a hash never fails
	return h.Sum32()%100 < m.share
}

// ending is what the liveness phase takes, in intervals: half of it are its waits, the rest is what faults leave behind.
const ending = 12

// faults is how long faults come and go: what the liveness phase leaves of the plan's time.
func (p Plan) faults() time.Duration { return max(p.Length-ending*p.Timing.Interval, p.Length/2) }

// longDisturbances go on until the plan's time is filled.
func (d longDrawing) longDisturbances(subjects []subject) []steps {
	m := d.mood()
	subjects = compatible(subjects[:min(len(subjects), m.disturbances)])
	var out []steps
	for _, s := range subjects {
		d.brief = s.needed && d.plan.Timing.Interval > 5*time.Second && slices.ContainsFunc(subjects, func(s subject) bool { return s.serves })
		out = append(out, d.longDisturbance(s, m, mostSteps/len(subjects)))
		d.brief = false
	}
	if !slices.ContainsFunc(slices.Concat(out...), func(s scenario.Step) bool { return s.Wait.IsZero() }) { // a seed without any fault shows nothing
		d.brief = true
		out[0] = slices.Insert(out[0], 1, subjects[0].episode()...)
		d.brief = false
	}
	return out
}

func (d longDrawing) longDisturbance(s subject, m mood, most int) (row steps) {
	var length time.Duration
	count := 0
	for faults := d.plan.faults(); length < faults && count < most; {
		gap := max(m.gap, 4*faults/time.Duration(most)) // so that what may be long enough is
		if s.rare {
			gap = max(gap, faults/rareEpisodes)
		}
		calm := min(1+time.Duration(d.rng.Int64N(int64(gap))), faults-length, scenario.MaxDuration)
		pause := wait(fmt.Sprintf("%dms", max(calm.Milliseconds(), 1)))
		episode := d.allowed(s, m) // none: nothing of this row may happen, and time passes all the same
		row = append(append(row, pause), episode...)
		for _, s := range append(episode, pause) {
			count += weight(s)
		}
		length += d.lasting(append(episode, pause))
	}
	return row
}

// weight is how many steps a step is, with repetitions. A round counts a few more than it has: the seeds of a day stay what they were.
func weight(s scenario.Step) int {
	if s.Repeat == nil {
		return 1
	}
	return 1 + s.Repeat.Times*(len(s.Repeat.Steps)*3/2+1)
}

// allowed is an episode of a kind that the mood allows; none if there is none.
func (d longDrawing) allowed(s subject, m mood) steps {
	for range redraws {
		episode := s.episode()
		if kind := kindOfStep(episode[0]); kind == "" || m.allows(kind) {
			return episode
		}
	}
	return nil
}

// lasting is how long steps take, without what their actions need.
func (d longDrawing) lasting(of steps) (sum time.Duration) {
	for _, s := range of {
		sum += s.Wait.In(d.plan.Timing) // zero for what is no wait
	}
	return sum
}

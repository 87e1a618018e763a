package kind

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

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

package kmsplugin

import (
	"context"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/internal/poll"
)

type Mutant struct {
	Name    string
	Mistake string // one sentence
	// Caught is the id of the check that must fail.
	Caught string
	// Also are further checks that the mistake breaks. Any other failure is a false alarm.
	Also []string
	// Change makes the mistake in the correct plugin. It is nil if Fault is set.
	Change func(*Reference)
	// Fault is what the fake plugin is started with (NAME:k=v), in place of the correct plugin.
	Fault string
}

// All are the mutants, by subject.
func All() []Mutant {
	return slices.Concat(transportMutants(), statusMutants(), envelopeMutants(), hostileMutants(), loadMutants(), rotationMutants(), honestyMutants(), lifecycleMutants(), secrecyMutants())
}

// Find is the mutant with a name.
func Find(name string) (Mutant, bool) { return find(All(), name) }

func find(all []Mutant, name string) (Mutant, bool) {
	if i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name }); i >= 0 {
		return all[i], true
	}
	return Mutant{}, false
}

// Times that mutants take to be in mid-call.
const (
	shortWait = 30 * time.Millisecond
	longWait  = 200 * time.Millisecond
)

// waitFor waits for a time, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) { _ = poll.Pause(ctx, d) }

package plugin

import "github.com/kmsharness/kmsharness/conformance"

// Options of a run. The zero value runs all checks.
type Options struct {
	conformance.Selection
	Timing *Timing // nil: DefaultTiming
	// WithoutWaits leaves out the checks that wait on purpose. They are skipped, with that reason.
	WithoutWaits bool
	// Seed of everything that is random in the requests.
	Seed uint64
	// Progress is called after each check; nil: never.
	Progress func(conformance.Result)
	// Waiting receives a line, now and then, while a plugin that the suite started does not listen; nil: none.
	Waiting func(string)
	// Checks are the checks to run; nil: Catalogue.
	Checks []Check
}

// ids are those of the checks to run.
func (o Options) ids() (ids []string) {
	for _, c := range o.checks() {
		ids = append(ids, c.ID)
	}
	return ids
}

func (o Options) checks() []Check {
	if o.Checks != nil {
		return o.Checks
	}
	return Catalogue()
}

func (o Options) timing() Timing {
	if o.Timing != nil {
		return *o.Timing
	}
	return DefaultTiming()
}

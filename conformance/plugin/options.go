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

// complete fills in what is nil.
func (o *Options) complete() {
	if o.Checks == nil {
		o.Checks = Catalogue()
	}
	if o.Timing == nil {
		timing := DefaultTiming()
		o.Timing = &timing
	}
}

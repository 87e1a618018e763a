package plugin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

// Options of a run. The zero value runs all checks.
type Options struct {
	Timing   *Timing // nil: DefaultTiming
	Profiles []conformance.Profile
	// Focus selects checks whose id it matches; nil: all.
	Focus *regexp.Regexp
	// Skip leaves checks out: id to reason. The reason is in the report.
	Skip map[string]string
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

// validate reports the first mistake.
func (o Options) validate() error {
	var ids []string
	for _, c := range o.checks() {
		ids = append(ids, c.ID)
	}
	for id, reason := range o.Skip {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("skip %s: no check has this id%s", id, suggest.DidYouMean(id, ids))
		}
		if strings.TrimSpace(reason) == "" {
			return fmt.Errorf("skip %s: expected a reason, as in %s=REASON", id, id)
		}
	}
	if o.Focus != nil && !slices.ContainsFunc(ids, o.Focus.MatchString) {
		return fmt.Errorf("focus %q: no check has such an id", o.Focus)
	}
	return nil
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

// selects reports whether the run is about a check at all.
func (o Options) selects(c Check) bool {
	if len(o.Profiles) > 0 && !slices.Contains(o.Profiles, c.Profile) {
		return false
	}
	return o.Focus == nil || o.Focus.MatchString(c.ID)
}

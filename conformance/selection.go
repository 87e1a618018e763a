package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// Selection is which checks of a suite are run. The zero value is all.
type Selection struct {
	// Profiles limits the checks; empty: all.
	Profiles []Profile
	// Focus selects checks whose id it matches; nil: all.
	Focus *regexp.Regexp
	// Skip leaves checks out: id to reason. The reason is in the report.
	Skip map[string]string
}

// Validate reports the first mistake, for a suite whose checks have these ids.
func (s Selection) Validate(ids []string) error {
	for id, reason := range s.Skip {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("skip %s: no check has this id%s", id, suggest.DidYouMean(id, ids))
		}
		if strings.TrimSpace(reason) == "" {
			return fmt.Errorf("skip %s: expected a reason, as in %s=REASON", id, id)
		}
	}
	if s.Focus != nil && !slices.ContainsFunc(ids, s.Focus.MatchString) {
		return fmt.Errorf("focus %q: no check of the suite has such an id", s.Focus)
	}
	return nil
}

// Selects reports whether the run is about a check at all.
func (s Selection) Selects(c Check) bool {
	if len(s.Profiles) > 0 && !slices.Contains(s.Profiles, c.Profile) {
		return false
	}
	return s.Focus == nil || s.Focus.MatchString(c.ID)
}

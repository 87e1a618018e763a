package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// Profile groups checks by what depends on them.
type Profile string

const (
	// Core rules are those without which kube-apiserver cannot use the subject. A core check needs no capability.
	Core Profile = "core"
	// Extended rules are promises of the API documentation and of the KEP that a cluster misses only under some conditions: a rotation, a
	// restart, a failure of the KMS.
	Extended Profile = "extended"
	// Robustness rules are about input and conditions that a correct kube-apiserver does not produce.
	Robustness Profile = "robustness"
)

// Profiles are all profiles, the most important first.
func Profiles() []Profile { return []Profile{Core, Extended, Robustness} }

// ParseProfiles reads a list of profiles that is separated by commas.
func ParseProfiles(list string) ([]Profile, error) {
	var profiles []Profile
	for name := range strings.SplitSeq(list, ",") {
		p := Profile(strings.TrimSpace(name))
		if !slices.Contains(Profiles(), p) {
			return nil, fmt.Errorf("profile %q: expected %s, %s or %s", name, Core, Extended, Robustness)
		}
		profiles = append(profiles, p)
	}
	return profiles, nil
}

// Capability is something that a check needs and that not every subject or caller offers, for example a hook that rotates the key.
type Capability string

// Check identifies a check and says what it demands. It is part of every Result, so that a report can be read without the suite.
type Check struct {
	// ID is stable: it is never given to another rule.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Rule is one sentence: what the subject must do.
	Rule string `json:"rule"`
	// Source is where the rule is written: the section of a KEP, the documentation of an API, or the code that enforces it.
	Source  string  `json:"source"`
	Profile Profile `json:"profile"`
	// Consequence is what the users of the subject, such as kube-apiserver, do if the rule is broken.
	Consequence string `json:"consequence"`
	// Needs are the capabilities without which the check is not supported.
	Needs []Capability `json:"needs,omitempty"`
}

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

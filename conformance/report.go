package conformance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/internal/input"
)

// Version and kind of the report format.
const (
	APIVersion = "conformance.kmsharness.dev/v1alpha1"
	Kind       = "ConformanceReport"
)

// maxReportBytes bounds what is read of a report: some hundred results with texts of bounded length.
const maxReportBytes = 8 << 20

// Implementation names the subject.
type Implementation struct {
	Name         string `json:"name"`
	Version      string `json:"version,omitempty"`
	Organization string `json:"organization,omitempty"`
	URL          string `json:"url,omitempty"`
}

// Verdict is what a run, or one profile of it, says about the subject.
type Verdict string

const (
	Conformant    Verdict = "conformant"
	NotConformant Verdict = "NOT conformant"
	// Undecided is the verdict where the machine starved during a check that failed, and nothing else failed.
	Undecided Verdict = "inconclusive"
	// Partial is the verdict where checks of the profile were not run, and none of the others failed.
	Partial Verdict = "partial"
)

// ProfileResult sums up one profile of a run.
type ProfileResult struct {
	Profile Profile `json:"profile"`
	// Conformant reports whether the verdict is conformant: all checks of the profile were run, none failed, was blocked or inconclusive, no core
	// check was skipped, and at least one passed.
	Conformant   bool `json:"conformant"`
	Passed       int  `json:"passed"`
	Failed       int  `json:"failed"`
	NotSupported int  `json:"notSupported"`
	Skipped      int  `json:"skipped"`
	Blocked      int  `json:"blocked"`
	Inconclusive int  `json:"inconclusive,omitempty"`
	// NotRun are the checks of the suite that have no result.
	NotRun int `json:"notRun,omitempty"`
}

// Verdict of the profile.
func (p ProfileResult) Verdict() Verdict {
	switch {
	case p.Failed+p.Blocked > 0 || p.Profile == Core && p.Skipped > 0:
		return NotConformant
	case p.Inconclusive > 0:
		return Undecided
	case p.NotRun > 0:
		return Partial
	case p.Passed == 0:
		return NotConformant
	}
	return Conformant
}

// Report is what one run of a suite found.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Suite is what was certified: plugin, reporter, aggregator or operator.
	Suite string `json:"suite"`
	// SuiteHash identifies what the suite demanded: it depends on the ids, rules, profiles and needs of all its checks. Older reports have none.
	SuiteHash string    `json:"suiteHash,omitempty"`
	Date      time.Time `json:"date"`
	// Versions are those of what took part besides the subject, for example the suite and the KMS API.
	Versions       map[string]string `json:"versions,omitempty"`
	Implementation Implementation    `json:"implementation"`
	// Seed of everything that is random in the requests.
	Seed uint64 `json:"seed"`
	// Capabilities that the run had.
	Capabilities []Capability `json:"capabilities,omitempty"`
	// Reproduce is the command that gives the same results.
	Reproduce string          `json:"reproduce,omitempty"`
	Profiles  []ProfileResult `json:"profiles"`
	// Results are in the order of the suite.
	Results []Result `json:"results"`

	suite []Check // all checks of the suite
}

// NewReport is the report of a run of a suite with some checks: all of them, also those that are not run.
func NewReport(suite string, checks []Check, seed uint64) *Report {
	return &Report{
		APIVersion: APIVersion, Kind: Kind, Suite: suite, SuiteHash: hash(checks), Date: time.Now().UTC().Truncate(time.Second), Seed: seed, suite: checks,
	}
}

func hash(checks []Check) string {
	h := sha256.New()
	for _, c := range checks {
		fmt.Fprintf(h, "%q %q %q %q\n", c.ID, c.Profile, c.Rule, c.Needs)
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil))
}

// Conclude sums up the results. A profile with a result for only some of its checks is partial.
func (r *Report) Conclude() {
	r.Profiles = nil
	for _, p := range Profiles() {
		sum := r.sum(p)
		if sum == (ProfileResult{Profile: p}) {
			continue
		}
		for _, c := range r.suite {
			if c.Profile == p && !slices.ContainsFunc(r.Results, func(have Result) bool { return have.ID == c.ID }) {
				sum.NotRun++
			}
		}
		sum.Conformant = sum.Verdict() == Conformant
		r.Profiles = append(r.Profiles, sum)
	}
}

func (r *Report) sum(p Profile) ProfileResult {
	sum := ProfileResult{Profile: p}
	counts := map[Outcome]*int{
		Passed: &sum.Passed, Failed: &sum.Failed, NotSupported: &sum.NotSupported, Skipped: &sum.Skipped, Blocked: &sum.Blocked, Inconclusive: &sum.Inconclusive,
	}
	for i := range r.Results {
		if n := counts[r.Results[i].Outcome]; n != nil && r.Results[i].Profile == p {
			*n++
		}
	}
	return sum
}

// Verdict of the run: the worst of its profiles. A run without results is not conformant.
func (r *Report) Verdict() Verdict {
	for _, v := range []Verdict{NotConformant, Undecided, Partial} {
		if slices.ContainsFunc(r.Profiles, func(p ProfileResult) bool { return p.Verdict() == v }) {
			return v
		}
	}
	if len(r.Profiles) == 0 {
		return NotConformant
	}
	return Conformant
}

// With returns the results with an outcome, in the order of the profiles: what fails the core comes first.
func (r *Report) With(o Outcome) (results []Result) {
	for _, p := range Profiles() {
		for _, result := range r.Results {
			if result.Outcome == o && result.Profile == p {
				results = append(results, result)
			}
		}
	}
	return results
}

// Write writes the report as YAML.
func (r *Report) Write(w io.Writer) error {
	data, err := yaml.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the report of %s: %w", r.Implementation.Name, err)
	}
	_, err = io.Copy(w, bytes.NewReader(data))
	return err
}

// ReadReport reads a report that Write wrote. Unknown fields are errors: a report with a misspelt field would be read as a better one. The function
// suite returns all checks of a suite, by its name: a report without the results of some of them is partial, whatever it says.
func ReadReport(file string, suite func(name string) []Check) (*Report, error) {
	f, err := input.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReportBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the report %s: %w", file, err)
	}
	if len(data) > maxReportBytes {
		return nil, fmt.Errorf("read the report %s: it has more than %d bytes", file, maxReportBytes)
	}
	var r Report
	if err := yaml.UnmarshalStrict(data, &r); err != nil {
		return nil, fmt.Errorf("read the report %s: %w", file, err)
	}
	if r.APIVersion != APIVersion || r.Kind != Kind {
		return nil, fmt.Errorf("read the report %s: apiVersion %q, kind %q: expected %s, %s", file, r.APIVersion, r.Kind, APIVersion, Kind)
	}
	profiles := r.Profiles
	r.Conclude()
	for i := range r.Profiles {
		if sum := &r.Profiles[i]; i < len(profiles) { // a suite of another version may have more checks
			sum.NotRun = profiles[i].NotRun
			sum.Conformant = sum.Verdict() == Conformant
		}
	}
	if !slices.Equal(profiles, r.Profiles) {
		return nil, fmt.Errorf("read the report %s: the profiles do not sum up the results: expected %+v", file, r.Profiles)
	}
	r.suite = suite(r.Suite)
	r.Conclude()
	return &r, nil
}

// Merge adds the results of a further run of the same suite to r. A check that failed in any run has failed; the evidence is that of the first
// failure.
func (r *Report) Merge(next *Report) {
	for i := range r.Results {
		have := &r.Results[i]
		at := slices.IndexFunc(next.Results, func(n Result) bool { return n.ID == have.ID })
		if at < 0 {
			continue
		}
		n := next.Results[at]
		if have.Runs == 0 {
			have.Runs, have.FailedRuns = 1, failures(have.Outcome)
		}
		have.Runs++
		have.FailedRuns += failures(n.Outcome)
		if have.Outcome != Failed && n.Outcome != Passed && n.Outcome != have.Outcome {
			have.Outcome, have.Reason, have.Evidence = n.Outcome, n.Reason, n.Evidence
		}
	}
	r.Conclude()
}

func failures(o Outcome) int {
	if o == Failed {
		return 1
	}
	return 0
}

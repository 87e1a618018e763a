package conformance

import "time"

// Outcome of a check.
type Outcome string

const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	// NotSupported is the outcome where a capability is absent that the check needs. It is not a pass.
	NotSupported Outcome = "not supported"
	// Skipped is the outcome where the caller left the check out, with a reason. A skipped core check means not conformant.
	Skipped Outcome = "skipped"
	// Blocked is the outcome where another check failed without which this one can show nothing. The failure is counted there.
	Blocked Outcome = "blocked"
	// Inconclusive is the outcome where the rule was broken by a lapse of time while the machine starved. It is neither a pass nor a failure.
	Inconclusive Outcome = "inconclusive"
)

type Evidence struct {
	Request  string `json:"request,omitempty"`
	Response string `json:"response,omitempty"`
	Expected string `json:"expected,omitempty"`
}

type Result struct {
	Check   `json:",inline"`
	Outcome Outcome `json:"outcome"`
	// Reason says why a check was not supported, skipped, blocked or inconclusive.
	Reason   string    `json:"reason,omitempty"`
	Evidence *Evidence `json:"evidence,omitempty"`
	// Measured are numbers that the check found, for people; they differ from run to run.
	Measured []string `json:"measured,omitempty"`
	// Runs and FailedRuns count the repetitions of a run with more than one. A check that failed in some runs only has failed.
	Runs       int `json:"runs,omitempty"`
	FailedRuns int `json:"failedRuns,omitempty"`

	Duration time.Duration `json:"-"`
}

// Finding is a broken rule with its evidence. It is the error that a check returns.
type Finding struct {
	Evidence
	// Consequence takes the place of that of the check, where the rule was broken in another way.
	Consequence string
	// Late reports whether the rule was broken by a time that passed.
	Late bool
}

// Error is the evidence on one line.
func (f *Finding) Error() string {
	text := f.Request + ": " + f.Response
	if f.Expected != "" {
		text += ", expected " + f.Expected
	}
	return text
}

package mutants

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/command"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/scenarios/mutants/decisions"
)

// claimants are operators with conditions that are not true.
func claimants() []Mutant {
	const (
		follows, encrypted       = "operator-encrypted", "ENCRYPTED"
		withdrawn, conditionEnds = "operator-request-withdrawn", "CONDITION-ENDS"
		refused, unwritable      = "operator-refused", "operator-object-cannot-be-written"
	)
	return []Mutant{
		{
			Name: "encrypted-on-request", Scenario: follows, Caught: []string{encrypted},
			Mistake: "Encrypted from the configuration that is asked for: an auditor reads that all is encrypted while nothing is",
			Virtual: claiming(contract.ConditionEncrypted, func(o core.Observed, _ core.Plan, c *core.Condition) { c.Status = o.Wanted.Type != config.Identity }),
		},
		{
			Name: "encrypted-reset-at-each-roll-out", Scenario: follows, Caught: []string{encrypted},
			Mistake: "Encrypted of the newest key alone: at each switch the cluster says that it is no longer encrypted",
			Virtual: claiming(contract.ConditionEncrypted, func(_ core.Observed, p core.Plan, c *core.Condition) {
				c.Status = c.Status && !slices.ContainsFunc(p.Conditions, func(c core.Condition) bool { return c.Type == core.ConditionProgressing && c.Status })
			}),
		},
		{
			Name: "encrypted-for-ever", Scenario: follows, Caught: []string{encrypted},
			Mistake: "Encrypted written when a migration ends, and never again: the cluster says so long after everything was decrypted",
			Virtual: simulating(latching(contract.ConditionEncrypted)),
		},
		{
			Name: "encrypted-before-the-second-resource", Scenario: follows, Caught: []string{encrypted},
			Mistake: "Encrypted when the first migration has succeeded: of two resources the other still lies in clear text",
			Virtual: encryptedByTheFirst,
		},
		{
			Name: "withdrawn-request-leaves-its-complaint", Scenario: withdrawn, Caught: []string{conditionEnds},
			Mistake: "a condition that the check of a KMS writes, and nobody when no KMS is asked for: Degraded for a request that was withdrawn long ago",
			Virtual: simulating(latching(core.ConditionPreflight)),
		},
		{
			Name: "withdrawn-request-blocks", Scenario: withdrawn, Caught: []string{"steps[10].expect"},
			Mistake: "a precondition of all switches that the last check has passed: one KMS that denies blocks the way to clear text, too",
			Virtual: simulating(decisions.Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if o.Preflight.Hash != "" && !o.Preflight.OK {
					decisions.Drop[core.CreateKey](p)
				}
			})),
		},
		{
			Name: "degraded-for-ever-by-a-refusal", Scenario: refused, Caught: []string{conditionEnds},
			Mistake: "a condition that an error sets and only a change of the configuration resets: one refused request degrades the cluster for weeks",
			Virtual: simulating(latching(core.ConditionConfig)),
		},
		{
			Name: "refused-write-not-reported", Scenario: refused, Caught: []string{"steps[6].expect"},
			Mistake: "an error that is logged and tried again, for ever: the conditions say that the operator is at work",
			Virtual: claiming(core.ConditionConfig, unsaid),
		},
		{
			Name: "failed-migration-not-reported", Scenario: unwritable, Caught: []string{"steps[5].expect"},
			Mistake: "a failed migration begun again without a word: the switch does not end, and nobody knows of the one object",
			Virtual: claiming(core.ConditionMigration, unsaid),
		},
		{
			Name: "migrations-nobody-carries-out", Scenario: "operator-migrates-in-tree", Caught: []string{"steps[2].expect"},
			Mistake: "migrations of an API that is served, and whose controller runs no more: the switch waits for ever",
			Virtual: operatorsBy(func(o *startingOperator) {
				o.args = append(slices.Clone(o.args), "--migrator="+revision.MigratorOpenShift)
			}),
		},
		{
			Name: "failed-migration-counts", Scenario: unwritable, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "a migration that has ended taken for one that has succeeded: the key goes, and the one object cannot be read any more",
			Virtual: countingFailures,
		},
	}
}

// unsaid hides what a condition is about.
func unsaid(_ core.Observed, _ core.Plan, c *core.Condition) {
	*c = core.Condition{Type: c.Type, Reason: core.ReasonAsExpected}
}

// claiming is operators that change one of their conditions before they write it.
func claiming(kind string, change func(o core.Observed, p core.Plan, c *core.Condition)) func() virtual.Options {
	return simulating(decisions.Planning(func(o core.Observed, p *core.Plan, _ time.Time) { changeCondition(o, p, kind, change) }))
}

func changeCondition(o core.Observed, p *core.Plan, kind string, change func(o core.Observed, p core.Plan, c *core.Condition)) {
	for i := range p.Conditions {
		if p.Conditions[i].Type == kind {
			change(o, *p, &p.Conditions[i])
		}
	}
}

// latching is an operator whose condition, once True, stays as it is.
func latching(kind string) func() decisions.Operator {
	return func() decisions.Operator {
		var latched core.Condition
		return decisions.Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
			changeCondition(o, p, kind, func(_ core.Observed, _ core.Plan, c *core.Condition) {
				if c.Status {
					latched = *c
				}
				if latched.Status {
					*c = latched
				}
			})
		})()
	}
}

// encryptedByTheFirst is an operator that encrypts ConfigMaps, too, and takes the first migration of a key for all.
func encryptedByTheFirst() virtual.Options {
	var succeeded atomic.Bool
	wrong := decisions.Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
		changeCondition(o, p, contract.ConditionEncrypted, func(o core.Observed, _ core.Plan, c *core.Condition) {
			c.Status = succeeded.Load() && o.Wanted.Type != config.Identity
		})
	})()
	o := migrating("/encryption-migration-core-configmaps", func(body []byte) []byte {
		if bytes.Contains(body, []byte(`"status":"True","type":"Succeeded"`)) {
			succeeded.Store(true)
		}
		return body
	}, func(o *operator.Options) { o.Decide = wrong.Decide })
	o.Operator.Command = cluster.DefaultOperator // as one of others, which encrypts all that it is asked to
	return o
}

// countingFailures is an operator that does not tell the results of a migration apart.
func countingFailures() virtual.Options {
	return migrating("", func(body []byte) []byte {
		if failed := []byte(`"status":"True","type":"Failed"`); bytes.Contains(body, failed) {
			body = bytes.Replace(body, failed, []byte(`"status":"False","type":"Failed"`), 1)
			body = bytes.Replace(body, []byte(`"status":"False","type":"Succeeded"`), []byte(`"status":"True","type":"Succeeded"`), 1)
		}
		return body
	})
}

// migrating is operators that read something else of the migrations whose paths end so.
func migrating(suffix string, read func(body []byte) []byte, configure ...command.Configure) virtual.Options {
	return operatorsBy(func(o *startingOperator) {
		o.configure = configure
		wrapRequests(&o.Host, func(next http.RoundTripper) roundTrip {
			return func(r *http.Request) (*http.Response, error) {
				answer, err := next.RoundTrip(r)
				if err != nil || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/storageversionmigrations/") || !strings.HasSuffix(r.URL.Path, suffix) {
					return answer, err
				}
				body, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				body = read(body)
				answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				return answer, err
			}
		})
	})()
}

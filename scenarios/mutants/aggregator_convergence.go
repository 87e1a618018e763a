package mutants

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// converging is aggregators of the profile convergence.
func converging() []Mutant {
	const (
		differ, dead, refused = "convergence-keys-differ", "convergence-dead-reporter", "convergence-get-refused"
		agreement, degraded   = "AGREEMENT", "AGREEMENT-DEGRADED"
		pruned, accepted      = "AGREEMENT-PRUNED", "ACCEPTED"
	)
	all := []Mutant{
		{
			Name: "agreement-of-the-healthy", Scenario: differ, Caught: []string{agreement},
			Mistake: "entries of unhealthy plugins left out: the one node that has not followed a rotation is unhealthy, and the others agree",
			Virtual: overlookingTyped(func(_ core.Input, t contract.TypedReport) bool { return t.Status != "Healthy" }),
		},
		{
			Name: "progressing-for-ever", Scenario: differ, Caught: []string{agreement},
			Mistake: "a condition that is set while ids differ, and nobody sets it back: a rotation that is over is in progress",
			Virtual: misconverging(func(in core.Input, d *core.Decision) {
				i := slices.IndexFunc(in.Observed.Conditions, func(c core.Condition) bool {
					return c.Type == contract.ConditionConvergenceProgressing && c.Status == core.True
				})
				if i >= 0 && d.Rollups[0].Status == core.False {
					d.WriteRollups = false
				}
			}),
		},
		{
			Name: "disagreement-of-one", Scenario: differ, Caught: []string{agreement},
			Mistake: "a message that ends with the first entry: which node has not followed cannot be read",
			Virtual: misconverging(func(_ core.Input, d *core.Decision) {
				d.Rollups[0].Message, _, _ = strings.Cut(d.Rollups[0].Message, ",")
			}),
		},
		{
			Name: "degraded-with-progressing", Scenario: differ, Caught: []string{degraded},
			Mistake: "no hour: each rotation degrades the cluster while nodes follow",
			Virtual: misconverging(func(_ core.Input, d *core.Decision) {
				d.Rollups[1].Status, d.Rollups[1].Reason, d.Rollups[1].Message = d.Rollups[0].Status, d.Rollups[0].Reason, d.Rollups[0].Message
			}),
		},
		{
			Name: "hour-begins-at-each-resync", Scenario: differ, Caught: []string{degraded},
			Mistake: "a transition time of now in each apply: the hour never ends",
			Virtual: misconverging(func(in core.Input, d *core.Decision) {
				if p := &d.Rollups[0]; p.Status == core.True && in.Now.Sub(p.LastTransitionTime) >= time.Minute {
					p.LastTransitionTime, d.WriteRollups = in.Now.UTC().Truncate(time.Second), true
				}
			}),
		},
		{
			Name: "prunes-what-is-stale", Scenario: dead, Caught: []string{pruned, "steps[1].holds"},
			Mistake: "entries removed after four intervals: a reporter that restarts slowly is forgotten meanwhile",
			Virtual: misconverging(func(in core.Input, d *core.Decision) {
				for _, r := range in.Observed.Reports {
					for _, t := range r.Typed {
						if at, err := contract.ParseTime(t.LastCheckedTime); err == nil && in.Now.Sub(at) > contract.StaleAfter(in.Interval) {
							d.Remove.Entries = append(d.Remove.Entries, t)
						}
					}
				}
			}),
		},
		{
			Name: "prunes-nothing", Scenario: dead, Caught: []string{pruned},
			Mistake: "old entries overlooked and left: a node that is gone has its remote key id on the object for ever",
			Virtual: misconverging(func(_ core.Input, d *core.Decision) { d.Remove.Entries = nil }),
		},
		{
			Name: "empty-encryption-status", Scenario: dead, Caught: []string{accepted},
			Mistake: "the last entry removed from its list alone: encryptionStatus: {} has too few properties, and is refused again and again",
			Virtual: aggregatesBy(func(a *startingAggregator) { changeRequests(&a.Host, patched(emptiesTheList)) }),
		},
		{
			Name: "condition-without-a-status", Scenario: refused, Caught: []string{accepted},
			Mistake: "a deferred apply that is made after an error, too: the condition that it was about has a type and nothing else",
			Virtual: aggregatesBy(func(a *startingAggregator) { wrapRequests(&a.Host, appliesAfterAnError) }),
		},
	}
	for i := range all {
		all[i].Contract = scenario.ContractHealthReports
	}
	return all
}

// misconverging is an aggregator that does something else than was decided.
func misconverging(change func(in core.Input, d *core.Decision)) func() virtual.Options {
	return forgetful(func(in core.Input, m core.Memory) core.Decision {
		d := core.Converge(in, m)
		d.Rollups = slices.Clone(d.Rollups)
		change(in, &d)
		return d
	})
}

// overlookingTyped is an aggregator that does not see some entries.
func overlookingTyped(overlooked func(core.Input, contract.TypedReport) bool) func() virtual.Options {
	return forgetful(func(in core.Input, m core.Memory) core.Decision {
		in = deep(in)
		for node, r := range in.Observed.Reports {
			r.Typed = slices.DeleteFunc(slices.Clone(r.Typed), func(t contract.TypedReport) bool { return overlooked(in, t) })
			in.Observed.Reports[node] = r
		}
		return core.Converge(in, m)
	})
}

// emptiesTheList removes the list where encryptionStatus is to go.
func emptiesTheList(o *outgoing) {
	const status = "/status/encryptionStatus"
	var ops []core.PatchOp
	if json.Unmarshal(o.Body, &ops) != nil {
		return
	}
	for _, op := range ops {
		if op.Op == "remove" && op.Path == status {
			o.Body = text([]core.PatchOp{{Op: "remove", Path: status + "/healthReports"}})
		}
	}
}

// appliesAfterAnError applies a condition without a status when the operator's object could not be read.
func appliesAfterAnError(next http.RoundTripper) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil || answer.StatusCode < http.StatusInternalServerError || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/kubeapiservers/cluster") {
			return answer, err
		}
		apply := r.Clone(r.Context())
		apply.Method, apply.URL.Path, apply.URL.RawQuery = http.MethodPatch, r.URL.Path+"/status", "force=true&fieldManager="+contract.AggregatorFieldManager
		body := text(object{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": object{"name": "cluster"},
			"status": object{"conditions": []object{{"type": contract.ConditionEncrypted, "lastTransitionTime": "2026-01-01T00:00:00Z"}}}})
		apply.Header.Set("Content-Type", "application/apply-patch+yaml")
		apply.Body, apply.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if applied, err := next.RoundTrip(apply); err == nil {
			_, _ = io.Copy(io.Discard, applied.Body)
			_ = applied.Body.Close()
		}
		return answer, nil
	}
}

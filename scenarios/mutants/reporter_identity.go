package mutants

import (
	"context"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// identity is reporters that write as somebody else, or what is not theirs.
func identity() []Mutant {
	return []Mutant{
		{
			Name: "shared-field-manager", Scenario: "steady-state", Caught: []string{"OWNERSHIP", "CADENCE"},
			Mistake: "one field manager for all reporters: under Server-Side Apply each removes the entry of the one before",
			Virtual: sending(func(o *outgoing) { o.FieldManager = strings.TrimSuffix(contract.ReporterFieldManagerPrefix, "-") }),
		},
		{
			Name: "field-manager-of-the-form", Contract: scenario.ContractConditions, Scenario: "reports-change-form", Caught: []string{"OWNERSHIP", "steps[1].expect"},
			Mistake: "another field manager for the typed list: Server-Side Apply does not remove the condition from before the change of form, and nobody else does",
			Virtual: sending(func(o *outgoing) {
				if strings.Contains(string(o.Body), `"healthReports"`) {
					o.FieldManager += "-typed"
				}
			}),
		},
		{
			Name: "no-force", Scenario: "entry-taken-over", Caught: []string{"OWNERSHIP", "CADENCE"},
			Mistake: "an apply without force: once somebody else has touched the entry, every write of its reporter is a conflict",
			Virtual: sending(func(o *outgoing) { o.Force = false }),
		},
		{
			Name: "no-force-yet", Scenario: "steady-state", Caught: []string{"OWNERSHIP"},
			Mistake: "the same before anybody has touched the entry: nothing fails until then",
			Virtual: sending(func(o *outgoing) { o.Force = false }),
		},
		{
			Name: "updates-the-whole-status", Scenario: "steady-state", Caught: []string{"LEAST-PRIVILEGE"},
			Mistake: "UpdateStatus in place of an apply: many writers of one object overwrite or refuse each other",
			Virtual: sending(func(o *outgoing) { o.Verb, o.MediaType = "update", "" }),
		},
		{
			Name: "lists-operators", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"LEAST-PRIVILEGE"},
			Mistake: "an informer in every reporter: it needs list and watch, which its identity does not have",
			Virtual: reporting(func(r *startingReporter) error {
				changeRequests(&r.Host, func(o *outgoing) {
					if o.Verb == "get" {
						o.Verb, o.Name = "list", ""
					}
				})
				return nil
			}),
		},
		{
			Name: "writes-the-rollup", Scenario: "plugin-unhealthy", Caught: []string{"LEAST-PRIVILEGE"},
			Mistake: "a reporter that degrades the operator itself when its plugin fails, so that it is seen sooner: the rollup has one owner, and that one is another",
			Virtual: sending(func(o *outgoing) {
				edit(o, func(status object) {
					list, _ := status["conditions"].([]any)
					if !strings.Contains(fmt.Sprint(list...), `"status":"healthy"`) {
						status["conditions"] = append(list, object{"type": contract.ConditionDegraded, "status": "True", "reason": contract.ReasonPluginUnhealthy,
							"message": "see the report", "lastTransitionTime": "2026-01-01T00:00:00Z"})
					}
				})
			}),
		},
		{
			Name: "policy-of-the-service-account", Scenario: "service-token-speaks-for-its-node", Caught: []string{"steps[1]"}, Virtual: admitting(forCertificates()),
			Mistake: "an admission policy that goes by the name of the service account, which all reporters of a Deployment share: the token of one node is worth the entries of all",
		},
		{
			Name: "policy-without-legacy-tokens", Scenario: "legacy-token-revoked", Caught: []string{"steps[1]"}, Virtual: admitting(forCertificates()),
			Mistake: "roles for the service accounts of all nodes, and an admission policy that does not know them: the legacy token of one node is worth the entries of all",
		},
		{
			Name: "policy-without-a-bound", Scenario: "reporter-may-not-fill-the-cr", Caught: []string{"steps[0]"}, Virtual: admitting(withoutRules("size(bytes(")),
			Mistake: "an admission policy that says what a reporter may write, and not how much: one credential fills the CR, and etcd refuses every write of anybody",
		},
		{
			Name: "policy-without-a-bound-of-managers", Scenario: "reporter-may-not-fill-the-cr", Caught: []string{"steps[8]"}, Virtual: admitting(withoutRules("size(variables.ownAfter)")),
			Mistake: "an admission policy that bounds the texts of a report alone: each apply under another field manager adds a record to managedFields, until etcd refuses every write of anybody",
		},
		{
			Name: "degraded-suffix", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"LEAST-PRIVILEGE", "CADENCE"},
			Mistake: "a condition type that ends in Degraded, as an operator's usually do: the status syncer unites it into the ClusterOperator",
			Virtual: sending(conditioned(func(c object) { c["type"] = fmt.Sprint(c["type"], "Degraded") })),
		},
		{
			Name: "older-reporter-goes-on", Scenario: "second-plugin-added", Caught: []string{"TRUTHFUL-PROBE"}, Virtual: publishing(inTurnWithAnOlder),
			Mistake: "a roll-out that does not end the reporter from before: two of one node, with different sockets, overwrite each other",
		},
		{
			Name: "one-apply-per-plugin", Scenario: "plugin-hangs-beside-another", Caught: []string{"TRUTHFUL-PROBE"}, Virtual: publishing(oneByOne),
			Mistake: "an apply for each plugin: the entry is one message, so that each of them removes the plugin of the one before",
		},
	}
}

func oneByOne(next apply) apply {
	return func(ctx context.Context, write core.Action) error {
		for _, e := range write.Report.Entries {
			one := write
			one.Report.Entries = []contract.Entry{e}
			if err := next(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}
}

// inTurnWithAnOlder lets every second write be that of a reporter that does not have the first of two plugins in its flags.
func inTurnWithAnOlder(next apply) apply {
	older := false
	return func(ctx context.Context, write core.Action) error {
		if older = !older; older && len(write.Report.Entries) > 1 {
			write.Report.Entries = write.Report.Entries[1:]
		}
		return next(ctx, write)
	}
}

package mutants

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// formats is reporters whose reports are not in the form of the contract.
func formats() []Mutant {
	return []Mutant{
		{
			Name: "detail-unbounded", Contract: scenario.ContractConditions, Scenario: "plugin-hostile-detail", Caught: []string{"FORMAT"}, Virtual: rawDetails(quotedDetail),
			Mistake: "the plugin's text as it came: a megabyte of it goes into the object that every node writes",
		},
		{
			Name: "detail-unescaped", Contract: scenario.ContractConditions, Scenario: "plugin-hostile-detail", Caught: []string{"FORMAT"}, Virtual: rawDetails(pastedDetail),
			Mistake: `a message made with Sprintf: a plugin's text may close the string, and say "healthy" itself`,
		},
		{
			Name: "control-characters", Contract: scenario.ContractConditions, Scenario: "plugin-hostile-detail", Caught: []string{"FORMAT"},
			Mistake: "a detail that is cut to its length but keeps control characters: they reach the terminal of whoever reads it",
			Virtual: rawDetails(func(said, detail string) string { return quotedDetail(said, cut(detail, 1000)) }),
		},
		{
			Name: "detail-left-out", Contract: scenario.ContractConditions, Scenario: "plugin-unhealthy", Caught: []string{"FORMAT"},
			Mistake: "a report without detail, to keep the object small: nobody can tell why a plugin is not healthy",
			Virtual: message(func(e object) { delete(e, "detail") }, inOrder),
		},
		{
			Name: "local-time", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"FORMAT", "before.expect"},
			Mistake: `time.Format("2006-01-02T15:04:05"): local time without a zone, which no reader on another node can compare`,
			Virtual: message(func(e object) { e["lastChecked"] = strings.TrimSuffix(fmt.Sprint(e["lastChecked"]), "Z") }, inOrder),
		},
		{
			Name: "indented", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"FORMAT"},
			Mistake: "MarshalIndent, so that people can read it: half of the bytes of an object that every node writes are white space",
			Virtual: message(func(object) {}, func(list []any) string {
				b, _ := json.MarshalIndent(list, "", "  ")
				return string(b)
			}),
		},
		{
			Name: "fields-in-any-order", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"FORMAT"},
			Mistake: "entries marshalled from a map: readers must accept any order, writers keep to one, so that equal reports are equal texts",
			Virtual: message(func(object) {}, func(list []any) string { return string(text(list)) }),
		},
		{
			Name: "unknown-field", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"FORMAT"},
			Mistake: "a field more in every entry, for debugging: what the contract does not know nobody bounds",
			Virtual: message(func(object) {}, func(list []any) string {
				return strings.ReplaceAll(inOrder(list), `,"lastChecked"`, `,"latency":"3ms","lastChecked"`)
			}),
		},
		{
			Name: "signal-in-status", Contract: scenario.ContractConditions, Scenario: "plugin-unhealthy", Caught: []string{"FORMAT"},
			Mistake: "a condition that is False with a reason when a plugin fails, as conditions usually are: lastTransitionTime moves, and whoever watches transitions sees every blip",
			Virtual: sending(conditioned(func(c object) {
				if said, _ := c["message"].(string); !strings.Contains(said, `"status":"healthy"`) {
					c["status"], c["reason"] = "False", "PluginNotHealthy"
				}
			})),
		},
		{
			Name: "transition-on-every-write", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"FORMAT"}, Virtual: transitionNow(),
			Mistake: "metav1.Now() for lastTransitionTime in every apply, although status never changes",
		},
	}
}

// rawDetails is a reporter that has the healthz text of each plugin as it came, and puts it into its message: said is the message
// that the good one would write.
func rawDetails(put func(said, raw string) string) func() virtual.Options {
	return reporting(func(r *startingReporter) error {
		raw := ""
		changeRequests(&r.Host, patched(conditioned(func(c object) {
			if raw != "" && raw != "ok" {
				c["message"] = put(fmt.Sprint(c["message"]), raw)
			}
		})))
		r.changes = append(r.changes, func(l *reporter.Loop) {
			l.Step = misreading(func(ev *core.Event) {
				raw = ""
				if first := ev.Results[0]; first.Answer != nil {
					raw = first.Answer.Healthz
				}
			})
		})
		return nil
	})
}

// quotedDetail puts a text in place of the detail, as JSON.
func quotedDetail(said, raw string) string { return withDetail(said, string(text(raw))) }

// pastedDetail puts it in as it is.
func pastedDetail(said, raw string) string { return withDetail(said, `"`+cut(raw, 1000)+`"`) }

func withDetail(said, detail string) string {
	before, _, ok := strings.Cut(said, `"detail":`)
	if !ok {
		return said
	}
	return before + `"detail":` + detail + "}]"
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

// transitionNow takes the time from lastChecked, which is the instant of the write but for some milliseconds.
func transitionNow() func() virtual.Options {
	return sending(conditioned(func(c object) {
		var list []struct {
			LastChecked time.Time `json:"lastChecked"`
		}
		if json.Unmarshal([]byte(fmt.Sprint(c["message"])), &list) == nil && len(list) > 0 {
			c["lastTransitionTime"] = list[0].LastChecked.UTC().Format(time.RFC3339)
		}
	}))
}

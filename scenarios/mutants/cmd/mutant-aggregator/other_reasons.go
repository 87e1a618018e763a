package main

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// otherReasons is right by the sources, and has other reasons than this project has decided on: a subject that passes, and fails with --strict.
func otherReasons() func(core.Input, core.Memory) core.Decision {
	const mark = "Here"
	words := []string{contract.ReasonPluginUnhealthy, contract.ReasonPluginUnreachable, contract.ReasonReportStale, contract.ReasonReportMalformed, contract.ReasonClockSkew,
		contract.ReasonReportMissing, contract.ReasonAwaitingFirstReport, contract.ReasonNoUsableWriteKey, contract.ReasonWriteKeyUnknown,
		contract.ReasonKEKRotationInProgress, contract.ReasonKeyMigrationInProgress, contract.ReasonNotConverged}
	var there, back []string
	for _, w := range words {
		there, back = append(there, w, w+mark), append(back, w+mark, w)
	}
	say := strings.NewReplacer(append(there, contract.ReasonAsExpected, contract.ReasonAsExpected+mark)...)
	read := strings.NewReplacer(append(back, contract.ReasonAsExpected+mark, contract.ReasonAsExpected)...)
	united := strings.NewReplacer(there...)
	changed := func(all []core.Condition, by *strings.Replacer, which func(kind string) bool) []core.Condition {
		all = slices.Clone(all)
		for i := range all {
			if which(all[i].Type) {
				all[i].Reason = by.Replace(all[i].Reason)
			}
		}
		return all
	}
	rollups := func(kind string) bool { return slices.Contains(contract.RollupTypes(), kind) }
	any := func(string) bool { return true }
	return func(in core.Input, m core.Memory) core.Decision {
		in.Observed.Conditions = changed(in.Observed.Conditions, read, rollups)
		in.ClusterOperator = changed(in.ClusterOperator, read, any)
		d := core.Step(in, m)
		d.Rollups = changed(d.Rollups, say, rollups)
		d.ClusterOperator = changed(d.ClusterOperator, united, any)
		return d
	}
}

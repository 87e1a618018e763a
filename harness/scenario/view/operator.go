package view

import "github.com/kmsharness/kmsharness/harness/history"

func operatorOf(d history.Decision) Operator {
	return Operator{
		Key: int64(d.Key), Revision: int64(d.Revision), PluginRevision: int64(d.PluginRevision), Stage: d.Stage, ConvergedKEK: d.ConvergedKEK,
		Keys: numbers(d.Keys), Revisions: numbers(d.Revisions), PluginRevisions: numbers(d.PluginRevisions),
	}
}

func numbers[N int | uint64](all []N) []int64 {
	out := make([]int64, 0, len(all))
	for _, n := range all {
		out = append(out, int64(n))
	}
	return out
}

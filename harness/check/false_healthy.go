package check

func falseHealthy() Invariant {
	return Invariant{
		ID:        "FALSE-HEALTHY",
		Statement: "once a plugin of an expected node has failed for longer than the detection bound, KMSPluginsDegraded is not False until it has recovered",
		Source:    "Timing that a user may rely on",
		judge:     judgeFalseHealthy,
	}
}

func judgeFalseHealthy(v *view) (f Finding) {
	healthy := v.degraded("False")
	for _, t := range v.sortedPlugins() {
		expected := v.pluginExpected(t.plugin)
		able := v.reporterAble(t.node).and(v.inCharge).and(expected)
		for _, bad := range t.bad {
			for _, due := range v.detectable(bad, able, expected) {
				f.judgedAt(due.from, due.to)
				for _, s := range healthy {
					if c := s.clip(due); !c.empty() {
						f.violate(Violation{At: c.from, From: bad.from, To: due.from, Seq: s.seq, Node: t.node, KeyID: t.keyID, Seen: shown(s.cond) + ", while " + t.String() +
							" had been failing for " + short(c.from.Sub(bad.from)),
							Allowed: "True or Unknown from " + short(v.run.Timing.DetectionBound()+v.tolerance()) + " after the first failure (event " + number(bad.seq) + ")"})
					}
				}
			}
		}
	}
	return f
}

// detectable is the part of a bad run in which the rollup must show it: from where reporter and aggregator could do
// their work for the whole detection bound, to the end of the run, while the plugin is expected.
func (v *view) detectable(bad badRun, able, expected spans) spans {
	due := able.clip(bad.span).settled(v.run.Timing.DetectionBound() + v.tolerance())
	if len(due) == 0 {
		return nil
	}
	for _, x := range expected.clip(bad.span) {
		if x.has(firstOf(due)) {
			return spans{{firstOf(due), x.to}}
		}
	}
	return nil
}

package check

func falseHealthy() Invariant {
	return Invariant{
		ID:        "FALSE-HEALTHY",
		Statement: "once a plugin of an expected node has failed for longer than the detection bound, KMSPluginsDegraded is not False until it has recovered",
		Source:    "Timing that a user may rely on",
		Timed:     AllTimed,
		Judge:     judgeFalseHealthy,
	}
}

func judgeFalseHealthy(v *Facts) (f Finding) {
	healthy := v.objects.degraded("False")
	for _, t := range v.plugins.sorted() {
		expected := v.expectations.ofPlugin(t.plugin)
		able := v.able.reporter(t.node).and(v.able.inCharge).and(expected)
		for _, bad := range t.bad {
			for _, due := range detectable(v, bad, able, expected) {
				f.JudgedAt(due.from, due.to)
				for _, s := range healthy {
					if c := s.clip(due); !c.empty() {
						f.Violate(Violation{At: c.from, From: bad.from, To: due.from, Seq: s.seq, Node: t.node, KeyID: t.keyID, Seen: shown(s.cond) + ", while " + t.String() +
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
func detectable(v *Facts, bad badRun, able, expected spans) spans {
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

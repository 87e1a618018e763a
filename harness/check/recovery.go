package check

func recovery() Invariant {
	return Invariant{
		ID:        "RECOVERY",
		Statement: "a plugin that recovers is visible in the rollup within I + J + R + W + A",
		Source:    "Timing that a user may rely on",
		Tolerance: Tolerance{window: recoveryWindow, reporter: true, aggregator: true, Why: "a bound: what is still named after it is a mistake"},
		Judge: func(v *Facts) Finding {
			f, samples := recoveries(v)
			f.measure("latency", summarize(samples, v.run.Timing.RecoveryBound()+v.tolerance()))
			return f
		},
	}
}

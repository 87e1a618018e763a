package check

func recovery() Invariant {
	return Invariant{
		ID:        "RECOVERY",
		Statement: "a plugin that recovers is visible in the rollup within I + J + R + W + A",
		Source:    "Timing that a user may rely on",
		Timed:     AllTimed,
		Judge: func(v *Facts) Finding {
			f, samples := recoveries(v)
			f.measure("latency", summarize(samples, v.run.Timing.RecoveryBound()+v.tolerance()))
			return f
		},
	}
}

package check

func recovery() Invariant {
	return Invariant{
		ID:        "RECOVERY",
		Statement: "a plugin that recovers is visible in the rollup within I + J + R + W + A",
		Source:    "Timing that a user may rely on",
		judge: func(v *view) Finding {
			f, samples := v.recoveries()
			f.measure("latency", summarize(samples, v.run.Timing.RecoveryBound()+v.tolerance()))
			return f
		},
	}
}

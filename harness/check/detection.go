package check

func detection() Invariant {
	return Invariant{
		ID:        "DETECTION",
		Statement: "a plugin that starts to fail is visible in the rollup within I + J + R + W + A",
		Source:    "Timing that a user may rely on",
		Timed:     AllTimed,
		Judge: func(v *Facts) Finding {
			f, samples := detections(v)
			f.measure("latency", summarize(samples, v.run.Timing.DetectionBound()+v.tolerance()))
			return f
		},
	}
}

package check

func detection() Invariant {
	return Invariant{
		ID:        "DETECTION",
		Statement: "a plugin that starts to fail is visible in the rollup within I + J + R + W + A",
		Source:    "Timing that a user may rely on",
		judge: func(v *view) Finding {
			f, samples := v.detections()
			f.measure("latency", summarize(samples, v.run.Timing.DetectionBound()+v.tolerance()))
			return f
		},
	}
}

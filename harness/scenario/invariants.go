package scenario

// Invariants are the ids that a scenario may excuse when the parser is not told which ones the checker has.
func Invariants() []string {
	return []string{"FALSE-HEALTHY", "FALSE-ALARM", "DETECTION", "RECOVERY", "STALE-UNKNOWN", "ABSENCE-IS-NOT-BROKEN",
		"NO-ORPHAN", "NO-RESURRECTION", "OWNERSHIP", "MONOTONIC", "FRESH-ONLY", "CADENCE", "TRUTHFUL-PROBE", "FORMAT",
		"ROLLUP-TRUTH", "QUIET", "UNION", "CONVERGENCE", "UID", "NO-DATA-LOSS", "SWITCH-ORDER", "OPERATOR-CONVERGENCE", "LEAST-PRIVILEGE", "STREAM-TRUTH", "NOTHING-RAN", "KEY-ID-STABLE", "NOTHING-SECRET", "NO-FORGED-EXCUSE"}
}

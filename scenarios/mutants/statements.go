package mutants

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// judged are the statements of the sources (scenarios/statements.yaml) that an invariant judges.
func judged() map[string]string {
	return map[string]string{
		"ACCEPTED":              "S0-05 S0-06",
		"FALSE-HEALTHY":         "S0-05 S0-12 S3-14 S3-15",
		"FALSE-ALARM":           "S0-12 S0-17 S4-07",
		"DETECTION":             "S0-05 S3-13 S3-14 S3-18",
		"RECOVERY":              "S3-13 S3-14 S3-18",
		"STALE-UNKNOWN":         "S0-08 S0-13 S0-18",
		"ABSENCE-IS-NOT-BROKEN": "S0-17",
		"NO-ORPHAN":             "S0-14 S0-15",
		"NO-RESURRECTION":       "S0-14 S0-15 S0-16",
		"OWNERSHIP":             "S0-10 S0-19 S1-01",
		"MONOTONIC":             "S0-07 S0-08",
		"FRESH-ONLY":            "S0-07",
		"CADENCE":               "S0-01 S0-07 S0-21 S3-13 S4-01 S4-02 S4-03 S4-05 S4-06 S4-07 S4-08 S4-09 S4-11",
		"TRUTHFUL-PROBE":        "S0-01 S0-02 S0-04 S0-05 S0-08 S0-09 S1-03 S3-10 S3-13 S3-15",
		"FORMAT":                "S0-06 S0-08",
		"ROLLUP-TRUTH":          "S0-04 S0-05 S0-08 S0-12 S0-20 S3-15",
		"QUIET":                 "S0-10 S0-21",
		"UNION":                 "S0-11 S0-12",
		"CONVERGENCE":           "S0-20 S3-07",
		"UID":                   "S2-01 S2-02 S2-03 S2-04",
		"NO-DATA-LOSS":          "S3-06 S3-07 S3-08 S3-19 S3-21",
		"SWITCH-ORDER":          "S0-14 S3-03 S3-04 S3-05 S3-06 S3-07 S3-08 S3-09 S3-21",
		"OPERATOR-CONVERGENCE":  "S0-20 S3-07 S3-20",
		"LEAST-PRIVILEGE":       "S0-19",
		"STREAM-TRUTH":          "S1-02 S1-04 S1-05 S1-06 S1-07 S1-08",
		"KEY-ID-STABLE":         "S3-07 S3-10",
		"NOTHING-SECRET":        "S2-02",
	}
}

// StepsAbout are the statements that the expectations which catch a mutant are about, by the name of the mutant. Of other mutants it is not known.
func StepsAbout() map[string][]string {
	return map[string][]string{
		"progresses-for-ever":                    {"S3-01", "S3-04"},
		"plugin-cannot-start-unsaid":             {"S3-04"},
		"operator-of-the-default":                {"S0-03"},
		"policy-of-the-service-account":          {"S0-19"},
		"uid-required":                           {"S2-05"},
		"keys-not-kept":                          {"S2-06"},
		"sockets-of-the-static-pod":              {"S3-02"},
		"deadline-of-a-local-plugin":             {"S3-12"},
		"first-words-of-the-error":               {"S3-15"},
		"contains-ok":                            {"S3-16"},
		"credentials-by-name":                    {"S3-04"},
		"credentials-by-version":                 {"S3-04"},
		"invalid-is-identity-simulated":          {"S3-01"},
		"never-prunes":                           {"S3-06"},
		"missing-credentials-block-simulated":    {"S3-10"},
		"lease-never-renewed":                    {"S3-11"},
		"aggregator-by-load-balancer-alone":      {"S4-05", "S4-07", "S4-11"},
		"alternatives-after-minutes":             {"S4-07", "S4-09", "S4-11"},
		"unblocked-at-once":                      {"S4-02", "S4-03", "S4-09"},
		"log-in-tried-once":                      {"S3-11"},
		"new-key-while-a-plugin-fails-simulated": {"S3-17"},
		"no-preflight-simulated":                 {"S3-17"},
		"plugins-never-end-simulated":            {"S3-19"},
		"never-migrates-simulated":               {"S3-21"},
	}
}

// Breaks are the statements that the mistake breaks, as far as that is shown: those that its scenario covers and that what must catch it is about. An
// invariant that judges one statement alone says so in any scenario.
func (m Mutant) Breaks(s *scenario.Scenario) []string {
	var out []string
	add := func(statement string, shown bool) {
		if shown && !slices.Contains(out, statement) {
			out = append(out, statement)
		}
	}
	of := judged()
	for _, id := range m.Caught {
		statements := strings.Fields(of[id])
		if len(statements) == 1 {
			add(statements[0], true)
		}
		for _, c := range s.Covers {
			add(c, slices.Contains(statements, c))
		}
	}
	for _, c := range StepsAbout()[m.Name] {
		add(c, slices.Contains(s.Covers, c))
	}
	return out
}

package health_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/health"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// caught are the subjects with a mistake that each check catches, by their names in package mutants. Those that are no simulated ones are programs,
// which TestMutantsAreCaught cannot run.
func caught() map[string][]string {
	return map[string][]string{
		"HR-RUNS":                    {},
		"HA-RUNS":                    {},
		"HO-RUNS":                    {},
		"HR-ACCEPTED-TYPED":          {"typed-kek-id-left-out", "typed-kek-id-empty", "typed-status-invented", "typed-time-left-out", "openshift-remote-key-id-left-out", "openshift-detail-as-it-came"},
		"HR-ACCEPTED-CONDITION":      {"detail-unbounded"},
		"HR-FIRST-REPORT":            {},
		"HR-CADENCE-MAX":             {"only-news", "slow-ticks", "write-on-change", "every-third-left-out"},
		"HR-CADENCE-MIN":             {"fast-ticks"},
		"HR-JITTER":                  {"no-jitter"},
		"HR-AFTER-PAUSE":             {"catches-up"},
		"HR-NOTHING-QUEUED":          {"queue-and-flush", "retry-until-written", "openshift-failed-writes-queued"},
		"HR-MONOTONIC":               {"older-after-newer"},
		"HR-API-OUTAGE":              {"apiserver-never-redialled"},
		"HR-REFUSED":                 {"gives-up-when-forbidden"},
		"HR-REFUSED-RATE":            {"tries-until-it-is-taken"},
		"HR-CREDENTIAL":              {"credential-read-once", "openshift-credential-read-once"},
		"HR-PROBE-DEADLINE":          {"no-probe-deadline", "long-probe-deadline", "code-left-out", "no-rpc-deadline"},
		"HR-PROBES-CONCURRENT":       {"probes-in-turn"},
		"HR-HANG-HIDES-NOTHING":      {"one-failure-cancels-all"},
		"HR-ALL-PLUGINS":             {"failed-plugin-left-out", "sorted-by-key-id", "one-apply-per-plugin"},
		"HR-SOCKETS-LISTED":          {"sockets-found-by-scan", "openshift-sockets-found-by-scan"},
		"HR-SOCKETS-CHANGED":         {},
		"HR-LAST-CHECKED":            {"checked-when-written"},
		"HR-NO-BACK-OFF":             {"backs-off-from-failures", "openshift-grpc-back-off"},
		"HR-PLUGIN-RESTART":          {"plugin-never-redialled", "capital-ok", "version-of-the-draft"},
		"HR-TRUTHFUL":                {},
		"HR-ANSWER-UNHEALTHY":        {"never-unhealthy", "answer-of-before"},
		"HR-ANSWER-EXACTLY-OK":       {"contains-ok"},
		"HR-ANSWER-ERROR":            {},
		"HR-ANSWER-NIL":              {"nil-is-no-news"},
		"HR-ANSWER-KEY-ID-EMPTY":     {"key-id-unchecked"},
		"HR-ANSWER-KEY-ID-OVERSIZED": {},
		"HR-ANSWER-VERSION":          {"version-unchecked"},
		"HR-KEK-ID":                  {"key-id-cut-as-a-label", "ids-swapped"},
		"HR-DETAIL-TEXT":             {"first-words-of-the-error"},
		"HR-HOSTILE-TEXT":            {"never-unhealthy"},
		"HR-CONDITION-CONSTANT":      {"signal-in-status"},
		"HR-TRANSITION-TIME":         {"transition-on-every-write"},
		"HR-TRANSITION-TIME-RESTART": {},
		"HR-JSON-MINIFIED":           {"indented"},
		"HR-JSON-FORM":               {"fields-in-any-order", "unknown-field", "detail-unescaped"},
		"HR-TIME-RFC3339":            {"local-time"},
		"HR-DETAIL-BOUND":            {},
		"HR-DETAIL-PRINTABLE":        {"control-characters"},
		"HR-DETAIL-PRESENT":          {"detail-left-out"},
		"HR-ERROR-WITHOUT-KEK-ID":    {"key-of-before-it-failed"},
		"HR-TYPED-FORM":              {},
		"HR-TYPED-TEXTS":             {"never-unhealthy"},
		"HR-TYPED-KEY-IDS":           {"key-id-unchecked"},
		"HR-TYPED-ERRORS":            {"no-probe-deadline"},
		"HR-APPLY":                   {"updates-the-whole-status"},
		"HR-OWN-ENTRY":               {"writes-the-rollup", "degraded-suffix"},
		"HR-LEAST-PRIVILEGE":         {"lists-operators"},
		"HR-MANAGER-OF-THE-NODE":     {"shared-field-manager", "openshift-shared-field-manager"},
		"HR-MANAGER-STABLE":          {"openshift-field-manager-with-its-pid"},
		"HR-FORCE":                   {"no-force"},
		"HR-SIGTERM":                 {},
		"HR-NO-LAST-WORDS":           {"openshift-writes-after-sigterm"},
		"HR-NO-RESURRECTION":         {"fights-a-live-reporter"},
		"HR-OVERLAP":                 {"openshift-report-removed-at-its-end"},
		"HR-SUCCESSOR":               {},
		"HR-METRIC-HEALTHY":          {},
		"HR-METRIC-ERRORS":           {},
		"HR-METRIC-DURATION":         {},
		"HR-DETECTION":               {"three-strikes"},
		"HR-RECOVERY":                {"slow-to-forgive"},
		"HR-NO-FALSE-ALARM":          {},
		"HR-OTHER-INVARIANTS":        {"writes-in-a-steady-state"},
		"HR-SLOW-IS-HEALTHY":         {"deadline-of-a-local-plugin"},
		"HA-ACCEPTED":                {},
		"HA-HEALTHY":                 {},
		"HA-ROLLUP":                  {},
		"HA-UNHEALTHY":               {},
		"HA-ERROR":                   {},
		"HA-NAMES-ALL":               {"names-the-first"},
		"HA-REASONS":                 {"error-before-unhealthy"},
		"HA-MESSAGE-BOUND":           {"message-unbounded"},
		"HA-FOLLOWS":                 {"rollup-by-hand"},
		"HA-AVAILABLE":               {"available-with-any-key", "read-key-counts-for-writes"},
		"HA-PROGRESSING-ROTATION":    {"rotation-unseen"},
		"HA-PROGRESSING-MIGRATION":   {},
		"HA-NUMBERED-KEK":            {"number-taken-for-a-key"},
		"HA-CONVERGENCE":             {"converged-by-majority", "rotation-unseen"},
		"HA-STALE":                   {"stale-is-healthy", "threshold-of-its-own", "three-intervals"},
		"HA-STALE-THRESHOLD":         {"flaps-on-a-lost-write"},
		"HA-STALE-TIMER":             {"does-not-wake"},
		"HA-MALFORMED":               {"malformed-is-skipped"},
		"HA-CLOCK-SKEW":              {"future-is-fresh"},
		"HA-OLDEST-ENTRY":            {"newest-entry-counts"},
		"HA-ABSENCE":                 {"absent-is-broken"},
		"HA-MISSING":                 {"awaits-for-ever", "expects-who-reports"},
		"HA-CLEANUP-NODE":            {"never-cleans-up", "late-clean-up", "forget-removed-nodes"},
		"HA-CLEANUP-KMS":             {"rollup-kept-after-kms", "reports-kept-after-kms"},
		"HA-CLEANUP-EXACT":           {"clean-up-by-prefix", "replaces-the-list"},
		"HA-CLEANUP-NOT-STALE":       {"removes-what-is-stale"},
		"HA-CLEANUP-NO-FIGHT":        {"fights-a-live-reporter"},
		"HA-CLEANUP-UNKNOWN-NODE":    {},
		"HA-QUIET":                   {"writes-in-a-steady-state", "age-in-the-message"},
		"HA-ONE-WRITER":              {"two-leaders"},
		"HA-RESTRAINT":               {"hammers"},
		"HA-REFUSED":                 {},
		"HA-FIELD-MANAGER":           {"manager-of-the-library"},
		"HA-FOREIGN-CONDITIONS":      {"takes-over-all-conditions"},
		"HA-UNION":                   {"own-conditions-only", "cluster-operator-forgotten"},
		"HA-UNION-NO-REPORTS":        {"reports-reach-the-cluster-operator"},
		"HA-RESTART":                 {"forgets-rollups-at-start"},
		"HA-HANDOVER":                {"stale-cache-after-handover"},
		"HA-LEASE-RELEASED":          {"lease-not-released"},
		"HA-SIGTERM":                 {},
		"HA-WATCH-RENEWED":           {"watch-never-renewed"},
		"HA-WATCH-LATE":              {"trusts-its-watches"},
		"HA-DETECTION":               {},
		"HA-RECOVERY":                {},
		"HA-NO-FALSE-ALARM":          {},
		"HA-AGREEMENT":               {"agreement-of-the-healthy", "progressing-for-ever"},
		"HA-AGREEMENT-DEGRADED":      {"degraded-with-progressing", "hour-begins-at-each-resync"},
		"HA-AGREEMENT-PRUNED":        {"prunes-what-is-stale", "prunes-nothing"},
		"HA-OTHER-INVARIANTS":        {"only-news"},
		"HO-READ-BEFORE-WRITE":       {"writes-before-all-read-simulated", "promotes-before-all-have-read-simulated"},
		"HO-KEPT-UNTIL-MIGRATED":     {"removes-before-migration-simulated"},
		"HO-PLUGINS-END-LAST":        {"teardown-order-reversed-simulated", "one-plugin-per-pod-simulated", "plugins-end-with-the-type-simulated"},
		"HO-NO-DATA-LOSS":            {"prunes-too-early-simulated"},
		"HO-MIGRATES":                {"never-migrates-simulated", "oldest-wins-simulated"},
		"HO-SWITCH":                  {},
		"HO-KEK-ROTATION":            {"rotation-makes-no-difference-simulated"},
		"HO-CONVERGENCE":             {"converged-by-the-first-node", "converged-although-unhealthy", "converged-although-stale", "converged-although-empty"},
		"HO-OLDER-KEY":               {"agrees-over-all-keys", "agrees-over-all-entries"},
		"HO-ENCRYPTED":               {"encrypted-on-request", "encrypted-reset-at-each-roll-out", "encrypted-for-ever", "encrypted-before-the-second-resource"},
		"HO-CONDITION-ENDS":          {"withdrawn-request-leaves-its-complaint"},
		"HO-REFUSED":                 {"refused-write-not-reported"},
		"HO-MIGRATION-FAILS":         {"failed-migration-not-reported", "failed-migration-counts"},
		"HO-WITHDRAWN":               {"withdrawn-request-blocks"},
		"HO-PREFLIGHT":               {"no-preflight-simulated"},
		"HO-INVALID":                 {"invalid-is-identity-simulated"},
		"HO-CREDENTIALS":             {"missing-credentials-block-simulated"},
		"HO-RESUMES":                 {},
		"HO-SKEW":                    {},
		"HO-DOWNGRADE":               {"plugins-never-end-simulated"},
		"HO-PRUNES":                  {},
		"HO-NEW-NODE":                {"newcomer-gets-the-first-revision-simulated", "newcomer-gets-no-plugins-simulated"},
		"HO-OTHER-INVARIANTS":        {},
	}
}

// TestMutantsAreCaught: each check fails for the simulated subjects that it is there to catch.
func TestMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a run of the suite for each mutant")
	}
	for _, s := range suites(t) {
		for _, m := range mutants.All() {
			var must []string
			for _, id := range s.IDs() {
				if slices.Contains(caught()[id], m.Name) && m.Simulated() {
					must = append(must, id)
				}
			}
			if len(must) > 0 {
				t.Run(s.Name+"/"+m.Name, func(t *testing.T) { tryMutant(t, s, m, must) })
			}
		}
	}
}

// tryMutant judges a mutant by the checks that must fail, and by those that must not hide them.
func tryMutant(t *testing.T, s health.Suite, m mutants.Mutant, must []string) {
	form := m.Contract
	if form == "" {
		form = scenario.ContractConditions
	}
	focus := strings.Join(must, "|")
	for _, r := range simulate(t, s, m.Virtual(), form, focus) {
		if r.Outcome != conformance.Failed {
			t.Errorf("%s: %s, expected failed: %s", r.ID, r.Outcome, r.Reason)
		}
	}
}

// withoutMutant are the checks that no subject in package mutants breaks by itself. TestEachClaimFailsItsCheckAlone shows them findings.
func withoutMutant() []string {
	return []string{
		"HR-RUNS", "HA-RUNS", "HO-RUNS", "HR-FIRST-REPORT", "HR-DETAIL-BOUND", "HR-SOCKETS-CHANGED", "HR-TRUTHFUL", "HR-ANSWER-ERROR", "HR-ANSWER-KEY-ID-OVERSIZED",
		"HR-TRANSITION-TIME-RESTART", "HR-TYPED-FORM", "HR-SIGTERM", "HR-SUCCESSOR", "HR-METRIC-HEALTHY",
		"HR-METRIC-ERRORS", "HR-METRIC-DURATION", "HR-NO-FALSE-ALARM", "HA-ACCEPTED", "HA-HEALTHY",
		"HA-ROLLUP", "HA-UNHEALTHY", "HA-ERROR", "HA-PROGRESSING-MIGRATION", "HA-CLEANUP-UNKNOWN-NODE",
		"HA-REFUSED", "HA-SIGTERM", "HA-DETECTION", "HA-RECOVERY", "HA-NO-FALSE-ALARM",
		"HO-SWITCH", "HO-RESUMES", "HO-SKEW", "HO-PRUNES", "HO-OTHER-INVARIANTS",
	}
}

// TestEachCheckHasAMutant: the table has each check and names existing subjects, and a check without one is known.
func TestEachCheckHasAMutant(t *testing.T) {
	table := caught()
	known := map[string]bool{}
	for _, m := range mutants.All() {
		known[m.Name] = true
	}
	for _, s := range suites(t) {
		for _, id := range s.IDs() {
			if (len(table[id]) == 0) != slices.Contains(withoutMutant(), id) {
				t.Errorf("%s catches %v; in the list of checks without a mutant: %v", id, table[id], slices.Contains(withoutMutant(), id))
			}
			for _, name := range table[id] {
				if !known[name] {
					t.Errorf("%s: there is no mutant %s", id, name)
				}
			}
			delete(table, id)
		}
	}
	if left := slices.Sorted(maps.Keys(table)); len(left) > 0 {
		t.Errorf("no suite has the checks %s", strings.Join(left, ", "))
	}
}

package contract

import (
	"cmp"
	"slices"
	"time"
)

// AggregatorProfile is what an aggregator of one design promises. What it does not promise is not judged.
type AggregatorProfile struct {
	Name     string
	Promises []Promise
	// Conditions of the operator's CR are those that it writes.
	Conditions []string
	// PruneAfter is the age at which it removes an entry of any node. Zero: entries go with their nodes.
	PruneAfter time.Duration
	// DegradedAfter is how long remote key ids may differ before that degrades.
	DegradedAfter time.Duration
	// Resync is the most from one look at the reports to the next. Zero: it follows each change, and the bounds of Timing hold.
	Resync time.Duration
}

// Promise is a part of what an aggregator does, in words.
type Promise string

const (
	PromiseRollups   Promise = "rollups of reports"
	PromiseCleanup   Promise = "removal of what a gone node or a disabled KMS leaves"
	PromiseUnion     Promise = "conditions of the ClusterOperator"
	PromiseAgreement Promise = "agreement on remote key ids"
)

// Makes reports whether an aggregator makes a promise. All make the empty one.
func (p AggregatorProfile) Makes(promise Promise) bool {
	return promise == "" || slices.Contains(p.Promises, promise)
}

// Names of aggregator profiles.
const (
	AggregatorRollups     = "rollups"
	AggregatorConvergence = "convergence"
)

// Conditions and reason of an aggregator that judges agreement alone.
const (
	ConditionConvergenceProgressing = "KmsHealthReportsProgressing"
	ConditionConvergenceDegraded    = "KmsHealthReportsDegraded"
	ReasonReportsNotConverged       = "HealthReportsNotConverged"
)

// AggregatorProfiles are all, the default first. Convergence is OpenShift's of September 2026 (library-go, heads of 30 September).
func AggregatorProfiles() []AggregatorProfile {
	return []AggregatorProfile{
		{Name: AggregatorRollups, Promises: []Promise{PromiseRollups, PromiseCleanup, PromiseUnion}, Conditions: RollupTypes()},
		{Name: AggregatorConvergence, Promises: []Promise{PromiseAgreement},
			Conditions: []string{ConditionConvergenceProgressing, ConditionConvergenceDegraded, ConditionEncrypted},
			PruneAfter: 10 * time.Minute, DegradedAfter: time.Hour, Resync: time.Minute},
	}
}

// AggregatorProfileOf is the profile of a name: the default one for the empty name, and for a name that does not exist.
func AggregatorProfileOf(name string) AggregatorProfile {
	all := AggregatorProfiles()
	i := slices.IndexFunc(all, func(p AggregatorProfile) bool { return p.Name == cmp.Or(name, AggregatorRollups) })
	return all[max(i, 0)]
}

package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// BothContracts asks InForms for both wire forms.
const BothContracts = "both"

// InForms gives the scenarios in a wire form: one of Contracts, or BothContracts. A scenario that is about one form stays as it is. With both, the name
// of a scenario in the form that is not the default ends in "@healthreports".
func InForms(all []*Scenario, form string) ([]*Scenario, error) {
	if form != BothContracts && !slices.Contains(Contracts(), form) {
		return nil, fmt.Errorf("%q: expected %s or %s", form, strings.Join(Contracts(), ", "), BothContracts)
	}
	var out []*Scenario
	for _, s := range all {
		if form != ContractHealthReports || !s.AnyContract {
			out = append(out, s)
		}
		if form != ContractConditions && s.AnyContract {
			typed := *s
			typed.Contract = ContractHealthReports
			if form == BothContracts {
				typed.Name += "@" + ContractHealthReports
			}
			out = append(out, &typed)
		}
	}
	return out, nil
}

// Ways in which reports get to the API server: values of --publish.
const (
	PublishApply  = "ssa"    // reporters apply them
	PublishStream = "stream" // reporters stream them to the aggregator
)

// Published gives the scenarios with reporters that publish in a way: PublishApply or PublishStream. A scenario that names a
// connectivity is about how reporters reach the API, and stays as it is.
func Published(all []*Scenario, way string) ([]*Scenario, error) {
	if way != PublishApply && way != PublishStream {
		return nil, fmt.Errorf("%q: expected %s or %s", way, PublishApply, PublishStream)
	}
	if way == PublishApply {
		return all, nil
	}
	out := slices.Clone(all)
	for i, s := range all {
		if s.Topology.AnyConnectivity {
			streamed := *s
			streamed.Topology.Connectivity = history.ConnectStream
			out[i] = &streamed
		}
	}
	return out, nil
}

// FormMatters reports whether the wire form can make a difference to what a scenario is about: what is refused, who owns an entry, and what the
// aggregator reads. A scenario that is about one form does not count; those of what plugins answer are about the typed form.
func (s *Scenario) FormMatters() bool {
	return s.AnyContract && slices.Contains([]string{"security", "reporter", "aggregator"}, s.Area)
}

// FormFlags are the command-line flags that ask for the form of a scenario again.
func (s *Scenario) FormFlags() []string {
	var flags []string
	if s.AnyContract && s.Contract != ContractConditions {
		flags = append(flags, "--contract", s.Contract)
	}
	if s.Topology.AnyConnectivity && s.Topology.Connectivity == history.ConnectStream {
		flags = append(flags, "--publish", PublishStream)
	}
	return flags
}

// reasonOfRollup is what an expression demands of the reason of a rollup, or of a condition of the ClusterOperator.
var reasonOfRollup = regexp.MustCompile(`\b((?:rollup|clusterOperator)\.(degraded|available|progressing))\.reason == ["'](\w+)["']`)

// statuses are those that the reasons of the contract stand beside.
func statuses() map[string]map[string]string {
	return map[string]map[string]string{
		"degraded": {
			contract.ReasonPluginUnhealthy: "True", contract.ReasonPluginUnreachable: "True", contract.ReasonReportStale: "Unknown", contract.ReasonReportMalformed: "Unknown",
			contract.ReasonClockSkew: "Unknown", contract.ReasonReportMissing: "Unknown", contract.ReasonAwaitingFirstReport: "False", contract.ReasonAsExpected: "False",
		},
		"available":   {contract.ReasonNoUsableWriteKey: "False", contract.ReasonWriteKeyUnknown: "Unknown", contract.ReasonAsExpected: "True"},
		"progressing": {contract.ReasonKEKRotationInProgress: "True", contract.ReasonKeyMigrationInProgress: "True", contract.ReasonNotConverged: "False", contract.ReasonAsExpected: "False"},
	}
}

// StatusForReason is an expression that demands the status that goes with a reason where it demanded the reason of a rollup.
func StatusForReason(cel string) string {
	return reasonOfRollup.ReplaceAllStringFunc(cel, func(atom string) string {
		m := reasonOfRollup.FindStringSubmatch(atom)
		status, known := statuses()[m[2]][m[3]]
		if !known {
			return atom
		}
		return m[1] + `.status == "` + status + `"`
	})
}

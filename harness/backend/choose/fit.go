package choose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Fit is a scenario as far as a system under test can be judged by it.
type Fit struct {
	Scenario *scenario.Scenario
	// Unsupported is what the scenario needs that the system under test does not have; Notes is what of the scenario is not judged. A line each.
	Unsupported, Notes []string
}

// SourceOnly reports whether the system under test is judged by sources alone, and not by the decisions of this project.
func (o Options) SourceOnly() bool { return o.Others() && !o.Strict }

// BackOff is that of the reporter under test (contract.Timing): one of others may follow the source.
func (o Options) BackOff() int {
	if o.reporterTemplate() == "" || o.Strict {
		return 0
	}
	return contract.SourceBackOff
}

// InForm gives the options of a run in a wire form: one of scenario.Contracts, or scenario.BothContracts, which a reporter under test must be told.
func (o Options) InForm(form string) (Options, error) {
	template := o.reporterTemplate()
	if template == "" || strings.Contains(template, formPlaceholder) {
		return o, nil
	}
	if form == scenario.BothContracts {
		return o, fmt.Errorf("%s: the reporter under test is given no %s, so it writes one form: expected %s", form, formPlaceholder, strings.Join(scenario.Contracts(), " or "))
	}
	o.ReporterForm = form
	return o, nil
}

// formPlaceholder tells a reporter which form to write, metricsPlaceholder where to serve metrics.
const (
	formPlaceholder    = "{contract}"
	metricsPlaceholder = "{metricsAddress}"
	wayPlaceholder     = "{connectivity}"
	listPlaceholder    = "{alternatives}"
	// operatorPlaceholder tells a reporter which operator's CR it writes to.
	operatorPlaceholder = "{operator}"
	// Where the aggregator's replicas serve streams, and where one of them does.
	aggregatorsPlaceholder = "{aggregators}"
	streamPlaceholder      = "{streamAddress}"
)

// Fit leaves out of a scenario what the system under test does not have, as its command template and its credentials tell, and gives an operator the time
// that it takes on a backend.
func (o Options) Fit(s *scenario.Scenario, backend string) Fit {
	f := Fit{Scenario: s}
	if o.ReporterForm != "" && s.Contract != o.ReporterForm {
		f.Unsupported = append(f.Unsupported, fmt.Sprintf("a reporter that writes %s: the one under test is given no %s, so it writes %s only", s.Contract, formPlaceholder, o.ReporterForm))
	}
	if template := o.reporterTemplate(); template != "" && !strings.Contains(template, metricsPlaceholder) {
		f.withoutMetrics()
	}
	if template := o.reporterTemplate(); template != "" && len(s.Topology.Aggregated()) > 0 && !strings.Contains(template, operatorPlaceholder) {
		f.Unsupported = append(f.Unsupported, "apiServers: the reporter under test is given no "+operatorPlaceholder+", so it writes to the operator of kube-apiserver only")
	}
	f.ofReleases(history.RoleReporter, o.reporterTemplate())
	f.ofReleases(history.RoleAggregator, o.Aggregator.Command)
	f.unsupportedWay("connectivity", s.Topology.Connectivity, history.RoleReporter, o.reporterTemplate())
	f.unsupportedWay("aggregatorConnectivity", s.Topology.AggregatorConnectivity, history.RoleAggregator, o.Aggregator.Command)
	streams := s.Topology.Connectivity == history.ConnectStream
	if o.Streaming && !streams {
		f.Unsupported = append(f.Unsupported, "connectivity "+s.Topology.Connectivity+": reporters that stream do not use the API server, so that no way to it makes a difference to them")
	}
	if template := o.reporterTemplate(); streams && template != "" && !strings.Contains(template, aggregatorsPlaceholder) {
		f.Unsupported = append(f.Unsupported, "connectivity stream: the reporter under test is given no "+aggregatorsPlaceholder)
	}
	if streams && o.Aggregator.Command != "" && !strings.Contains(o.Aggregator.Command, streamPlaceholder) {
		f.Unsupported = append(f.Unsupported, "connectivity stream: the aggregator under test is given no "+streamPlaceholder)
	}
	if o.Aggregator.Command != "" && !s.ClusterOperator.Union().Inertia.IsZero() && !strings.Contains(o.Aggregator.Command, "{degradedInertia}") {
		f.lacks("clusterOperator.degradedInertia: aggregator.command has no {degradedInertia}")
	}
	f.ofAggregator(o.Aggregator, backend)
	if o.Aggregator.Command != "" && !o.Strict {
		var changed []string
		if f.Scenario, changed = statusesOnly(f.Scenario); len(changed) > 0 {
			f.Notes = append(f.Notes, "the reasons in "+strings.Join(changed, ", ")+" are this project's own: of another aggregator the status that goes with each is expected, with --strict the reason")
		}
	}
	if !o.Operator.IsZero() {
		f.ofOperator()
		if o.Operator.Full() {
			f.ofFullOperator()
		}
	}
	f.patient(o.Operator.Patience, backend)
	if !o.Plugin.IsZero() {
		f.ofPlugin(o.Plugin)
	}
	if o.Reporter.Identity == history.IdentityAdmin && s.Topology.ReporterToken == scenario.TokenSecret {
		f.Unsupported = append(f.Unsupported, "reporterToken secret: with reporter.identity admin reporters are administrators")
	}
	if o.Reporter.Identity == history.IdentityAdmin && takesRights(s) {
		f.Unsupported = append(f.Unsupported, "reporters whose role can be taken away: with reporter.identity admin they are administrators")
	}
	slices.Sort(f.Unsupported)
	f.Unsupported = slices.Compact(f.Unsupported)
	return f
}

// ofReleases names what a program under test cannot be started as.
func (f *Fit) ofReleases(role, template string) {
	if template == "" {
		return
	}
	if slices.Contains(f.Scenario.Previous(), role) {
		f.lacks("the previous release of a %s: the one under test has one release", role)
	}
	changes := func(a scenario.Action) bool { p, ok := a.(*scenario.Process); return ok && p.Contract != "" }
	if role == history.RoleReporter && !strings.Contains(template, formPlaceholder) && slices.ContainsFunc(f.Scenario.Actions(), changes) {
		f.lacks("a reporter that changes its wire form: the one under test is given no %s", formPlaceholder)
	}
}

// unsupportedWay names what a program under test is not given of a way to the API. An empty template is that of this project's program.
func (f *Fit) unsupportedWay(field, way, role, template string) {
	needed := map[string]string{history.ConnectStatic: listPlaceholder, history.ConnectAltSvc: wayPlaceholder}[way]
	if template != "" && !strings.Contains(template, needed) {
		f.Unsupported = append(f.Unsupported, fmt.Sprintf("%s %s: the %s under test is given no %s", field, way, role, needed))
	}
}

// reporterTemplate is the command template of a reporter that is not this project's, or the arguments of its image; empty if they are those of this
// project's.
func (o Options) reporterTemplate() string {
	if o.Reporter.Image != "" {
		return o.Reporter.Args
	}
	return o.Reporter.Command
}

// withoutMetrics leaves out what is expected of metrics.
func (f *Fit) withoutMetrics() {
	s, left, all := withoutMetrics(f.Scenario)
	switch {
	case len(left) == 0:
	case all:
		f.Unsupported = append(f.Unsupported, "metrics: the reporter under test is given no "+metricsPlaceholder)
	default:
		f.Scenario = s
		f.Notes = append(f.Notes, "what is expected of metrics in "+strings.Join(left, ", ")+" is not judged: the reporter under test is given no "+metricsPlaceholder)
	}
}

// takesRights reports whether a scenario takes rights from reporters.
func takesRights(s *scenario.Scenario) bool {
	return slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool {
		r, ok := a.(*scenario.Refuse)
		return ok && r.Role == history.RoleReporter && r.Mode == history.RefuseForbidden
	})
}

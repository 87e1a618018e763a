package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Run heads a history.
type Run struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	Title    string `json:"title,omitempty"` // the sentence that the scenario claims
	Area     string `json:"area,omitempty"`  // its part of the catalogue
	File     string `json:"file,omitempty"`  // the scenario file, as it was named on the command line
	Backend  string `json:"backend"`
	Seed     int64  `json:"seed"`
	// Reproduce is the command that runs this scenario again.
	Reproduce string `json:"reproduce,omitempty"`

	Timing contract.Timing `json:"timing"`
	// Tolerance is added to every bound: scheduling noise of a real-time backend, and what networks take.
	Tolerance time.Duration `json:"tolerance"`
	// TakeoverAllowance is how long an aggregator may take to be in charge after it started, lost its API server or
	// lost its leader (its lease duration). The contract does not bound this; zero means four intervals.
	TakeoverAllowance time.Duration `json:"takeoverAllowance,omitempty"`
	// Connectivity is how reporters reach the API: ConnectLoopback (also when empty), ConnectService, ConnectStatic, ConnectAltSvc or ConnectStream.
	Connectivity string `json:"connectivity,omitempty"`
	// AggregatorConnectivity is how aggregators reach it: ConnectService (also when empty), ConnectLoopback, ConnectStatic or ConnectAltSvc.
	AggregatorConnectivity string `json:"aggregatorConnectivity,omitempty"`
	// AggregatorProfile names the contract.AggregatorProfile by which aggregators are judged; empty: the default one.
	AggregatorProfile string `json:"aggregatorProfile,omitempty"`
	// Contract is the wire form that the reporters write: FormConditions or FormHealthReports.
	Contract string `json:"contract"`
	// CRDs is the variant of the operators' CRDs: CRDsDefault, CRDsGateOff, CRDsVaultConfig, or CRDsTechPreview (also when empty).
	CRDs string `json:"crds,omitempty"`
	// ReporterIdentity is which credentials the reporters have: IdentityLeast (also when empty) or IdentityAdmin.
	ReporterIdentity string `json:"reporterIdentity,omitempty"`
	// Observed: objects were watched and nothing else, by kmsharness observe. There is no audit log, no journal, and no action.
	Observed bool `json:"observed,omitempty"`
	// SourceOnly: the system under test is not this project's, and what only decisions of this project demand fails nothing.
	SourceOnly bool `json:"sourceOnly,omitempty"`
	// Operator is the plural resource of the operator CR ("kubeapiservers") and ClusterOperator its counterpart.
	Operator        string `json:"operator"`
	ClusterOperator string `json:"clusterOperator"`
	// Union is how the aggregator was configured to unite conditions into those of the ClusterOperator.
	Union contract.Union `json:"union,omitzero"`
	// Lifecycle says who switches the encryption: LifecycleOperator, or the harness itself (also when empty).
	Lifecycle string `json:"lifecycle,omitempty"`

	// APIServers are those beside kube-apiserver.
	APIServers []AggregatedAPIServer `json:"apiServers,omitempty"`

	// Plugin is the KMS v2 plugin under test; zero: the plugins are fake.
	Plugin Implementation `json:"plugin,omitzero"`
	// OperatorUnderTest is the encryption operator under test; zero: there is no operator, or it is this project's.
	OperatorUnderTest Implementation `json:"operatorUnderTest,omitzero"`

	// Excused are invariants whose violation this scenario provokes on purpose, with the reason.
	Excused []Excuse `json:"excused,omitempty"`
}

// Implementation is a program that others wrote.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

func (i Implementation) IsZero() bool { return i == Implementation{} }

func (i Implementation) String() string { return strings.TrimSpace(i.Name + " " + i.Version) }

// LifecycleOperator is the Lifecycle of a run with an API server operator.
const LifecycleOperator = "operator"

// Ways of reporters and aggregators to the API (docs/contract.md, "The reporter"): values of Run.Connectivity and Run.AggregatorConnectivity.
const (
	ConnectLoopback = "loopback" // their own node's API server
	ConnectService  = "service"  // any API server, through the load balancer
	ConnectStatic   = "static"   // any API server of a list, and the load balancer as the last resort
	ConnectAltSvc   = "altsvc"   // through the load balancer at first, then any API server that advertises itself by Alt-Svc
	ConnectStream   = "stream"   // none: they stream to the aggregator, which writes what they report
)

// AnyAPIServer reports whether, with a connectivity, any API server may serve a reporter, and not that of its own node alone.
func AnyAPIServer(connectivity string) bool {
	return connectivity != "" && connectivity != ConnectLoopback
}

// ThroughLoadBalancer reports whether, with a connectivity, reporters apply through the load balancer, always, at first or as the last resort.
func ThroughLoadBalancer(connectivity string) bool {
	return connectivity == ConnectService || FailsOver(connectivity)
}

// FailsOver reports whether, with a connectivity, a program uses alternative API servers (package altsvc).
func FailsOver(connectivity string) bool {
	return connectivity == ConnectStatic || connectivity == ConnectAltSvc
}

// Variants of the CRDs of the OpenShift API: values of Run.CRDs. The typed form has its field in CRDsTechPreview only.
const (
	CRDsDefault     = "Default"
	CRDsTechPreview = "TechPreviewNoUpgrade"
	CRDsGateOff     = "DefaultWithoutKMS"
	CRDsVaultConfig = "VaultKMSConfig"
)

// Wire forms of reports: values of Run.Contract.
const (
	FormConditions    = "conditions"
	FormHealthReports = "healthreports"
)

// Identities of a reporter: one that may apply the entry of its node and nothing else, and an administrator, as OpenShift's reporter is.
const (
	IdentityLeast = "least"
	IdentityAdmin = "admin"
)

// Excuse switches one invariant to "expected violation".
type Excuse struct {
	Invariant string `json:"invariant"`
	Reason    string `json:"reason"`
}

type PhaseName string

const (
	PhaseStart  PhaseName = "start"  // the environment comes up; not judged for settled health
	PhaseBefore PhaseName = "before" // healthy control: everything must be well
	PhaseSteps  PhaseName = "steps"  // the scenario's own timeline
	PhaseAfter  PhaseName = "after"  // faults are gone; everything must become well again
	PhaseEnd    PhaseName = "end"    // teardown begins: what follows is not judged
)

// Phase marks the beginning of a part of the run.
type Phase struct {
	Name PhaseName `json:"name"`
}

// Action is something that the engine did to the environment. Began and done are two events with the same ID.
type Action struct {
	ID     string         `json:"id"` // place in the scenario: "steps[2]", "after", …
	Verb   string         `json:"verb"`
	Target string         `json:"target,omitempty"` // resolved: "plugin cp-2/1", "process reporter/cp-3"
	Params map[string]any `json:"params,omitempty"`
	State  string         `json:"state"` // began, done, failed
	Error  string         `json:"error,omitempty"`
}

// Param is a parameter of the action as text, empty if it has none.
func (a Action) Param(name string) string {
	if x, ok := a.Params[name]; ok {
		return fmt.Sprint(x)
	}
	return ""
}

// States of an Action.
const (
	ActionBegan  = "began"
	ActionDone   = "done"
	ActionFailed = "failed"
)

// Expectation is one judged sentence of a scenario.
type Expectation struct {
	ID   string `json:"id"`   // place in the scenario: "steps[3].expect"
	Mode string `json:"mode"` // within, holds, never
	Text string `json:"text"` // the CEL expression
	OK   bool   `json:"ok"`
	// NotJudged, with OK: it was not met, and neither was Given, the effect of a fault that it assumes.
	NotJudged bool   `json:"notJudged,omitempty"`
	Given     string `json:"given,omitempty"`
	// House: it rests on a decision of this project, not on a source.
	House bool `json:"house,omitempty"`
	// Repeats is the expectation that failed before in the same way; only with --keep-going, where steps go on.
	Repeats string `json:"repeats,omitempty"`
	// Detail says what was seen, in words, when it was not met.
	Detail string        `json:"detail,omitempty"`
	Bound  time.Duration `json:"bound"`
	Took   time.Duration `json:"took"` // until it was met, or until it was given up
}

// End closes a history: without it the run was cut off.
type End struct {
	// Complete is false when a recorder lost something (a log could not be read to its end); Problem says what.
	Complete bool   `json:"complete"`
	Problem  string `json:"problem,omitempty"`
}

package scenario

import (
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// APIVersion and Kind head every scenario file.
const (
	APIVersion = "kmsharness.io/v1alpha1"
	KindName   = "Scenario"
)

// Scenario is one file of the catalogue.
type Scenario struct {
	// Name is unique in the catalogue, kebab-case and equal to the file's name: it becomes the spec's and JUnit's name.
	Name string
	// Title is one sentence that says what must hold.
	Title string
	// Area is one of Areas; Labels are further labels ("slow").
	Area   string
	Labels []string
	// OnlyKind says what of a real cluster the scenario judges that no other backend can; empty: nothing. With it the scenario has the
	// label only-kind, which the gate runs on kind.
	OnlyKind string
	// Covers are ids of statements of the sources ("S0-08").
	Covers []string

	Topology Topology
	// Contract is the wire form that reporters write: "conditions" (default) or "healthreports". AnyContract: the scenario named none, and may run
	// in either (InForms).
	Contract    string
	AnyContract bool
	// LastKeyStays: the plugin of an old key may go on reporting (harness/backend/choose).
	LastKeyStays bool
	// AnyReason: rollups may have reasons of their own (harness/backend/choose).
	AnyReason bool
	// Operator is the operator whose CR is reported to: "kubeapiserver" (default), "openshiftapiserver", "authentication".
	Operator string
	// ClusterOperator is how the aggregator unites conditions into those of the ClusterOperator.
	ClusterOperator ClusterOperator
	Steps           []Step
	// Excused invariants are expected to be violated, each with a reason.
	Excused []Excuse

	// File and the positions in it are for error messages; empty for a scenario written in Go.
	File string
}

// Topology is what is there when the timeline begins.
type Topology struct {
	ControlPlanes int      `yaml:"controlPlanes,omitempty" minimum:"1" maximum:"7" description:"nodes cp-1 to cp-N, 1 to 7; default 3"`
	KeyIDs        []string `yaml:"keyIDs,omitempty,flow" item:"keyID" minItems:"1" maxItems:"8" uniqueItems:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$" expected:"letters, digits and dashes, at most 63" without:"lifecycle=operator" why:"it begins with clear text and numbers its keys from 1" description:"plugins on each node, the write key first; default [\"1\"]"`
	Aggregators   int      `yaml:"aggregators,omitempty" minimum:"1" maximum:"3" description:"replicas, 1 to 3; default 1"`
	// APIServers beside kube-apiserver have plugins, reporters, an aggregator and an operator of their own.
	APIServers []string `yaml:"apiServers,omitempty,flow" item:"API server" enum:"kube-apiserver,openshift-apiserver,oauth-apiserver" minItems:"1" maxItems:"3" uniqueItems:"true" description:"those that encrypt, kube-apiserver among them; default kube-apiserver alone"`
	// Kubernetes is that of the kube-apiservers, which others are not changed by; empty: that of all tests.
	Kubernetes []string `yaml:"kubernetes,omitempty,flow" item:"release" enum:"1.34,1.35,1.36,1.37" minItems:"1" maxItems:"7" description:"releases of the kube-apiservers of cp-1, cp-2 and so on, the last one also of all further nodes (only local; quoted); default that of all tests"`
	Profile    string   `yaml:"profile,omitempty" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" description:"provider that the plugins stand for, such as aws (kmsharness profiles); default none"`
	// Start: the control before the steps is judged with StartRunning only.
	Start string `yaml:"start,omitempty" enum:"running,stopped" description:"running: healthy; stopped: only etcd and the remote KMS run"`
	// Lifecycle: an operator begins with nothing encrypted, and numbers the keys itself.
	Lifecycle string `yaml:"lifecycle,omitempty" enum:"direct,operator" description:"who switches the encryption: direct, the verb encryption; operator, an API server operator as apiserver says"`
	// Migrator is empty for revision.MigratorOpenShift.
	Migrator string `yaml:"migrator,omitempty" enum:"openshift,kubernetes" with:"lifecycle=operator" description:"whose StorageVersionMigrations an operator makes: openshift, migration.k8s.io/v1alpha1; kubernetes, storagemigration.k8s.io/v1 (only sim); default openshift"`
	// RollOut is empty for a pod in place of another.
	RollOut string `yaml:"rollOut,omitempty" enum:"in-place,surge" with:"lifecycle=operator" description:"how an API server's pod gives way to the next: in-place, it ends first; surge, the next one is ready while the one before is being deleted and serves on, as in HyperShift (only sim); default in-place"`
	// ReadKey is empty for a key that goes when nothing lies under it.
	ReadKey string `yaml:"readKey,omitempty" enum:"removed,kept" with:"lifecycle=operator" description:"what an operator does with the key of before a switch: removed, it goes when everything is written anew; kept, it stays for reading until the next switch, as in OpenShift; default removed"`
	// CRDs is empty for history.CRDsTechPreview. That of the APIServer configuration is CRDsTechPreview, but with CRDsGateOff: the default one has no encryption type KMS.
	CRDs string `yaml:"crds,omitempty" enum:"TechPreviewNoUpgrade,Default,DefaultWithoutKMS,VaultKMSConfig" description:"variant of the operators' CRDs; with VaultKMSConfig the settings of vault are an object of their own; Default has no typed list of reports, DefaultWithoutKMS no encryption type KMS either, as with the feature gate off; default TechPreviewNoUpgrade"`
	// Connectivity is that of the reporters of kube-apiserver. Those of others go through the load balancer always.
	Connectivity string `yaml:"connectivity,omitempty" enum:"loopback,service,static,altsvc,stream" description:"how reporters reach the API: loopback, the API server of their own node; service, any through the load balancer; static, any of a list of those that are there when they start; altsvc, any that advertises itself, after a first one through the load balancer; stream, none: they stream to the aggregator; default loopback"`
	// ReporterToken is empty for TokenBound.
	ReporterToken string `yaml:"reporterToken,omitempty" enum:"bound,secret" description:"what reporters with connectivity service show: bound, a token that expires and ends with their pod; secret, the legacy token of a Secret for each node, which does not expire and ends with the Secret; default bound"`
	// AggregatorConnectivity is empty for service.
	AggregatorConnectivity string `yaml:"aggregatorConnectivity,omitempty" enum:"loopback,service,static,altsvc" description:"how aggregators reach the API: loopback, the API server of a node alone; service, static and altsvc as reporters do; default service"`
	// AggregatorProfile is empty for contract.AggregatorRollups.
	AggregatorProfile string `yaml:"aggregatorProfile,omitempty" enum:"rollups,convergence" description:"what the aggregators promise: rollups of reports; convergence, only whether remote key ids agree, as OpenShift's does: sim then has the timing of production; default rollups"`
	// Timing is empty for that of all other scenarios.
	Timing string `yaml:"timing,omitempty" enum:"quick,production" description:"intervals and deadlines: quick, reports each second; production, each 30 s, with 5 s for a probe and 10 s for a write (not kind); default quick"`
	// AnyConnectivity: the scenario named none, and its reporters may stream (Published).
	AnyConnectivity bool `yaml:"-"`
}

// ClusterOperator are the aggregator's flags for the ClusterOperator, as contract.Union has them.
type ClusterOperator struct {
	DegradedInertia []string `yaml:"degradedInertia,omitempty,flow" item:"inertia" pattern:"^([A-Za-z0-9_.-]*Degraded=)?([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$" maxItems:"100" uniqueItems:"true" expected:"a duration such as 2m, or a condition type and a duration such as NodeControllerDegraded=10m" description:"how long a condition must be True or Unknown before Degraded shows it: 2m, and NodeControllerDegraded=10m for one type; default none"`
	// Left: the operator under test writes the ClusterOperator, by this inertia and library-go's rule for Unknown. No scenario file says so.
	Left bool `yaml:"-"`
}

// Union is the value of the flags. Inertia that cannot be parsed is none: the validation has reported it.
func (c ClusterOperator) Union() contract.Union {
	inertia, err := contract.ParseInertia(c.DegradedInertia)
	if err != nil {
		inertia = contract.Inertia{}
	}
	return contract.Union{Inertia: inertia, UnknownIsBad: c.Left, Leave: c.Left}
}

// Advertises reports whether API servers send Alt-Svc.
func (t Topology) Advertises() bool {
	return t.Connectivity == history.ConnectAltSvc || t.AggregatorConnectivity == history.ConnectAltSvc
}

// FailsOver reports whether programs use alternative API servers.
func (t Topology) FailsOver() bool {
	return history.FailsOver(t.Connectivity) || history.FailsOver(t.AggregatorConnectivity)
}

// Values of Topology.Start.
const (
	StartRunning = "running"
	StartStopped = "stopped"

	RollOutSurge = "surge"
	ReadKeyKept  = "kept"
)

// TimingProduction is the value of Topology.Timing that is not the default.
const TimingProduction = "production"

// Values of Topology.Lifecycle.
const (
	LifecycleDirect   = "direct"
	LifecycleOperator = history.LifecycleOperator
)

// Values of Topology.ReporterToken.
const (
	TokenBound  = "bound"
	TokenSecret = "secret"
)

// ByOperator says whether an API server operator switches the encryption.
func (t Topology) ByOperator() bool { return t.Lifecycle == LifecycleOperator }

// Excuse switches one invariant to "expected violation" with a reason.
type Excuse struct {
	Invariant string `yaml:"invariant" required:"true"`
	Reason    string `yaml:"reason" required:"true" pattern:"\\S+\\s+\\S+\\s+\\S" expected:"a sentence that says why the violation is wanted"`
}

// Step is one line of the timeline: either an action, an expectation, or a group of steps.
type Step struct {
	// Pos is where it stands in the file.
	Pos Position `yaml:"-"`

	// Exactly one of these is set.
	Action   Action       `yaml:"-"`                                                                                                                                 // under its verb
	Expect   *Expectation `yaml:"-"`                                                                                                                                 // under its mode
	Parallel []Step       `yaml:"parallel,omitempty" verbs:"parallel" required:"true" minItems:"1" maxItems:"10000" description:"steps that go on at the same time"` // done when the last is done
	Repeat   *Repeat      `yaml:"repeat,omitempty" verbs:"repeat" required:"true" description:"steps that are done several times"`
	Wait     Duration     `yaml:"wait,omitempty" verbs:"wait" required:"true" positive:"true" description:"lets time pass; the invariants are judged meanwhile"`

	// At counts from the beginning of the steps, or of the group.
	At    Duration `yaml:"at,omitempty" description:"not before this time from the beginning of the steps"`
	After Duration `yaml:"after,omitempty" description:"this long after the previous step"`
}

// Repeat runs steps several times.
type Repeat struct {
	Times int    `yaml:"times" required:"true" minimum:"1" maximum:"1000"`
	Until string `yaml:"until,omitempty" cel:"true" pattern:"\\S" description:"ends the repetition after the round in which it is true; fails if that never happens"`
	Steps []Step `yaml:"steps" required:"true" minItems:"1" maxItems:"10000"`
}

// Mode of an expectation.
type Mode string

const (
	ModeWithin Mode = "within" // becomes true before the bound is over
	ModeHolds  Mode = "holds"  // is true now and stays true for the bound
	ModeNever  Mode = "never"  // stays false for the bound
)

func modes() []Mode { return []Mode{ModeWithin, ModeHolds, ModeNever} }

// Expectation is a CEL expression over the state view, judged during a span of time.
type Expectation struct {
	Mode  Mode
	CEL   string
	Bound Duration
	// Given is an expression that must have been true while the expectation was watched: the effect of a fault, where a correct subject may escape it.
	// If it never was, an expectation that was not met is not judged. Empty: none.
	Given string
	// Origin is what it rests on: OriginSource (also when empty) or OriginHouse.
	Origin string
}

// Origins of an expectation.
const (
	OriginSource = "source" // the design, a KEP, an API's schema, or what kube-apiserver does
	OriginHouse  = "house"  // a decision of this project: "[decided here]" in the contract
)

// Position in a scenario file, 1-based; zero for a scenario written in Go.
type Position struct{ Line, Column int }

// APIServers are those that a topology can have, kube-apiserver first: it always has that one.
func APIServers() []string { return tagOf[Topology]("APIServers", "enum") }

// OperatorOf is the operator to whose CR the reporters of an API server write.
func OperatorOf(apiServer string) string {
	switch apiServer {
	case history.OpenShiftAPIServer:
		return "openshiftapiserver"
	case history.OAuthAPIServer:
		return "authentication"
	}
	return Operators()[0]
}

// Aggregated are the API servers beside kube-apiserver, in the order of the file.
func (t Topology) Aggregated() []string {
	return slices.DeleteFunc(slices.Clone(t.APIServers), func(name string) bool { return name == history.KubeAPIServer })
}

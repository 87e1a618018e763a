package history

import (
	"slices"
	"strings"
)

// API servers that encrypt (plugin management seed, deployment model). What an event says of none is about kube-apiserver, or about
// what they all share.
const (
	KubeAPIServer      = "kube-apiserver"
	OpenShiftAPIServer = "openshift-apiserver"
	OAuthAPIServer     = "oauth-apiserver"
)

// AggregatedAPIServer is one beside kube-apiserver: its reports go to an operator CR of its own, and its reporters through the load balancer.
type AggregatedAPIServer struct {
	Name string `json:"name"`
	// Operator and ClusterOperator as in Run.
	Operator        string `json:"operator"`
	ClusterOperator string `json:"clusterOperator"`
	Connectivity    string `json:"connectivity,omitempty"`
}

// Of is a payload that is about a further API server; with an empty name it is the payload.
type Of struct {
	APIServer string
	Payload   any
}

// About is the events as one API server's own history: those that say of it, without saying so, and those that are about what all
// share. The heading is that of its operator. Actions on other API servers stay and keep the name, so that no reader takes them for
// actions on this one.
// Events without further API servers are all kube-apiserver's, and given back as they are.
func About(events []Event, name string) []Event {
	run := MetadataOf(events)
	if run == nil || len(run.APIServers) == 0 {
		return events
	}
	heading, ok := run.of(name)
	if !ok {
		return nil
	}
	a := about{name: name, others: run.otherThan(heading)}
	out := make([]Event, 0, len(events))
	for _, e := range events {
		if e.Kind == KindRun && e.Run != nil {
			e.Run = &heading
		}
		if a.of(&e) {
			out = append(out, e)
		}
	}
	return out
}

// MetadataOf is what a history says of its run; nil if it says nothing.
func MetadataOf(events []Event) *Run {
	for n := range events {
		if events[n].Kind == KindRun {
			return events[n].Run
		}
	}
	return nil
}

// of is the heading for one API server.
func (r *Run) of(name string) (Run, bool) {
	out := *r
	out.APIServers = nil
	if name == "" || name == KubeAPIServer {
		return out, true
	}
	for _, f := range r.APIServers {
		if f.Name == name {
			out.Operator, out.ClusterOperator, out.Connectivity = f.Operator, f.ClusterOperator, f.Connectivity
			return out, true
		}
	}
	return out, false
}

// otherThan are the operators' CRs and the ClusterOperators of the other API servers.
func (r *Run) otherThan(own Run) map[string]bool {
	others := map[string]bool{r.Operator: true, r.ClusterOperator: true}
	for _, f := range r.APIServers {
		others[f.Operator], others[f.ClusterOperator] = true, true
	}
	delete(others, own.Operator)
	delete(others, own.ClusterOperator)
	return others
}

// about picks and changes events for one API server.
type about struct {
	name   string
	others map[string]bool // what belongs to other operators
}

func (a about) aggregated() bool { return a.name != "" && a.name != KubeAPIServer }

// of says whether an event belongs, and makes it the API server's own.
func (a about) of(e *Event) bool {
	switch {
	case e.APIServer == "":
		return a.shared(e)
	case e.Kind == KindAction:
		if e.APIServer == a.name {
			e.APIServer = ""
		}
		return true
	case e.APIServer != a.name:
		return false
	}
	e.APIServer = ""
	if e.Kind == KindProcess && e.Process != nil {
		p := *e.Process
		p.APIServer = ""
		if p.Role == RoleAPIServer { // the role is that of the one that reporters write to
			p.Role = RoleAggregatedAPIServer
		}
		e.Process = &p
	}
	return true
}

// shared says whether an event that names no API server is about this one as well.
func (a about) shared(e *Event) bool {
	switch e.Kind {
	case KindRequest:
		return e.Request == nil || !a.foreign(e.Request)
	case KindObject:
		return e.Object == nil || !a.others[Plural(e.Object.Resource)] && !a.others[e.Object.Name]
	}
	return !a.aggregated() || sharedByAll(e)
}

// foreign: a request about the CR or the ClusterOperator of another operator.
func (a about) foreign(r *Request) bool {
	if Plural(r.Resource) == "clusteroperators" {
		return a.others[r.Name]
	}
	return a.others[Plural(r.Resource)]
}

func sharedByAll(e *Event) bool {
	switch e.Kind {
	case KindExpected, KindCall, KindMetrics, KindSockets, KindData, KindEncryption, KindStorageInventory, KindEnvelope, KindDecision:
		return false
	case KindProcess:
		return e.Process != nil && !ownRole(e.Process.Role)
	case KindLink:
		return e.Link != nil && e.Link.From != RoleReporter
	case KindContainer: // a revision is that of one API server's pod
		return e.Container != nil && e.Container.State != PodRevised && e.Container.State != PodRefused
	}
	return true
}

// ownRole: of these roles each API server has processes of its own.
func ownRole(role string) bool {
	return slices.Contains([]string{RolePlugin, RoleReporter, RoleAggregator, RolePod, RoleOperator}, role)
}

// Plural is the name of a resource without its group.
func Plural(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return name
}

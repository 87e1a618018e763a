package scenario

import "github.com/kmsharness/kmsharness/harness/history"

// Values of Rollback.To beside numbers of revisions.
const (
	// RevisionPrevious is the newest revision that is older than that of the pod.
	RevisionPrevious = "previous"
	// RevisionNewest ends a rollback, as an installer does that tries again.
	RevisionNewest = "newest"
)

// Rollback replaces the pod of a node, or all pods of an aggregated API server, by one of another revision: what the startup monitor of a static pod
// does, or kubectl rollout undo to a Deployment.
type Rollback struct {
	// Pods are those of kube-apiserver on Node, or all of the aggregated APIServer.
	Pods   Selector `yaml:",inline" target:"true" only:"apiServer,node"`
	To     string   `yaml:"to" required:"true" format:"int-or-string" pattern:"^(previous|newest|[1-9][0-9]{0,5})$" minimum:"1" expected:"previous, newest or the number of a revision" description:"the number of a revision (operator.revisions), the previous one, or the newest again"`
	Expect string   `yaml:"expect,omitempty" enum:"accepted,refused" description:"refused: there is no such revision any more, or its pod could not read what is stored"`
}

func (r *Rollback) Target([]string) string {
	return selectedTarget(&Process{Target: Selector{Role: history.RolePod, Node: r.Pods.Node}})
}

func (*Rollback) About() string {
	return "replaces a pod of an API server by one of another revision"
}

func (r *Rollback) Harm() string {
	if r.To == RevisionNewest {
		return ""
	}
	return "rollback"
}

func (r *Rollback) Validate(v Validation) {
	aggregated := r.Pods.APIServer != "" && r.Pods.APIServer != history.KubeAPIServer
	switch node := r.Pods.Node; {
	case !v.Scenario().Topology.ByOperator():
		v.Add("", "rollback without an operator that makes revisions, expected lifecycle: operator in the topology")
	case !aggregated && node == "":
		v.Add("", "rollback without node, expected one, any or all: each static pod has a revision of its own")
	case aggregated && node != "" && node != NodeAll:
		v.Add("node", "node %s with %s, expected none or all: its pods are those of one Deployment", quote(node), r.Pods.APIServer)
	case r.To == RevisionNewest && r.Expect == OutcomeRefused:
		v.Add("expect", "expect is %s with to: %s, expected an older revision", quote(r.Expect), r.To)
	}
}

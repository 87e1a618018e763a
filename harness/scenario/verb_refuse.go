package scenario

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Refuse lets API servers refuse requests of reporters, aggregators or operators, or all writes of one object.
type Refuse struct {
	Role   string `yaml:"role,omitempty" target:"requests" enum:"reporter,aggregator,operator" description:"whose requests; default those of reporters and aggregators"`
	Node   string `yaml:"node,omitempty" target:"requests" refers:"nodes" description:"of the API server; default all"`
	Mode   string `yaml:"mode" required:"true" enum:"forbidden,too-many-requests,leader-changed,webhook-timeout,unavailable,timeout,restore" undo:"restore" description:"what is answered; restore ends all refusals of the role at the node"`
	Method string `yaml:"verb,omitempty" enum:"get,list,watch,patch,create,update" without:"mode=restore" description:"of the requests; default all"`
	// Object is one of those of the verb data: data-1 is the first of a run.
	Object string `yaml:"object,omitempty" target:"requests" pattern:"^data-[1-9][0-9]*$" expected:"an object of the verb data such as data-1" without:"role" description:"writes of this object, by any client, in place of those of a role"`
	// Count: the most are an hour of a reporter's.
	Count int      `yaml:"count,omitempty" minimum:"1" maximum:"10000" without:"mode=restore" description:"so many requests, then none"`
	For   Duration `yaml:"for,omitempty" positive:"true" without:"mode=restore" description:"for so long"`
	// RetryAfter is in seconds; 0: 1. kube-apiserver asks for 1 to 64 (KEP-1040); more than a minute no test waits for.
	RetryAfter int `yaml:"retryAfter,omitempty" minimum:"1" maximum:"60" with:"mode=too-many-requests" description:"seconds, with too-many-requests; default 1"`
}

func (*Refuse) About() string {
	return "lets API servers refuse requests of reporters, aggregators or operators, or writes of an object"
}

// Bound is how long requests are refused; zero: until they are counted, or restored.
func (r *Refuse) Bound() Duration { return r.For }

func (r *Refuse) Validate(v Validation) {
	if r.Role == history.RoleOperator && !v.Scenario().Topology.ByOperator() {
		v.Add("role", "role operator without an operator, expected lifecycle: operator in the topology")
	}
	if r.Mode == history.RefuseWebhookTimeout && slices.Contains([]string{"get", "list", "watch"}, r.Method) {
		v.Add("verb", "verb %s with mode webhook-timeout, expected one that writes: admission does not look at reads", r.Method)
	}
}

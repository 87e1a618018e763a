package choose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// ofPlugin leaves out of a scenario what a plugin under test does not have.
func (f *Fit) ofPlugin(p undertest.Plugin) {
	s := f.Scenario
	switch { // such a scenario is about that as a whole: other needs would say nothing more
	case s.Topology.Profile != "":
		f.lacks("topology.profile %s: the plugin under test has the provider that it has", s.Topology.Profile)
		return
	case s.Topology.ByOperator():
		f.lacks("lifecycle operator: the operator chooses the remote key of each plugin, and no placeholder of plugin.command names it")
		return
	}
	several := len(keyIDs(s)) > 1 || len(s.Topology.Aggregated()) > 0
	if several && !separates(s, p.Command) {
		f.lacks("several keys: plugin.command has neither {shared} nor {state}, so that the plugins of all keyIDs would share one")
	}
	for _, a := range s.Actions() {
		switch a := a.(type) {
		case *scenario.Inject:
			f.ofFault(a)
		case *scenario.Rotate:
			f.ofRotation(a, p, several)
		case *scenario.KMS:
			f.ofKMS(a, p)
		case *scenario.Process:
			if !a.Overlap.IsZero() && a.Target.Role == history.RolePlugin {
				f.lacks("restart with overlap: the plugin in front of the one under test has its socket")
			}
			if a.Target.Role == history.RoleRemoteKMS {
				f.lacks("%s remote-kms: the KMS behind the plugin under test is no process of the harness", a.Do)
			}
		}
	}
	var changed []string
	if f.Scenario, changed = ofAnyPlugin(s); len(changed) > 0 {
		f.Notes = append(f.Notes, "in "+strings.Join(changed, ", ")+" the plugin under test may report the loss of its KMS as unhealthy or as an error, in its own words")
	}
}

func (f *Fit) lacks(format string, args ...any) {
	f.Unsupported = append(f.Unsupported, fmt.Sprintf(format, args...))
}

// ofFault names faults that the harness cannot make for a plugin that it does not know.
func (f *Fit) ofFault(i *scenario.Inject) {
	switch {
	case i.Fault == scenario.ProviderFailure:
		f.lacks("fault %s: the plugin under test has the failures of its own provider", i.Fault)
	case i.Fault == "no-uid":
		f.lacks("fault %s: whether a plugin accepts requests without a uid is its own decision", i.Fault)
	case i.Fault == "key-id-reused":
		f.lacks("fault %s: it needs the key_ids of the KEKs that the plugin had", i.Fault)
	case i.Fault == "crash" && i.Params["how"] == "exit":
		f.lacks("fault crash with how exit: the harness cannot end the plugin under test from within; kill it instead")
	}
}

func (f *Fit) ofRotation(r *scenario.Rotate, p undertest.Plugin, several bool) {
	switch {
	case p.Rotate == "":
		f.lacks("rotate: there is no plugin.rotate")
	case several && !separates(f.Scenario, p.Rotate):
		f.lacks("rotate with several keys: plugin.rotate has no placeholder that tells them apart")
	}
	if lags(r.Lag) {
		f.lacks("rotate with a lag: when the plugin under test notices a rotation is its own business")
	}
}

func (f *Fit) ofKMS(k *scenario.KMS, p undertest.Plugin) {
	switch {
	case k.Op == scenario.KMSDelete || k.Op == scenario.KMSRecreate:
		f.lacks("kms %s: no plugin.restore brings back a key that is deleted", k.Op)
	case k.Op == scenario.KMSThrottle:
		f.lacks("kms throttle: no hook of a plugin under test limits its log-ins and calls")
	case p.Break == "":
		f.lacks("kms: there is no plugin.break with plugin.restore")
	case k.KEK != 0 || k.Older:
		f.lacks("kms %s with a kek: plugin.break takes away the whole key, and no version of it", k.Op)
	case k.Node != "" && k.Node != scenario.NodeAll && !ofOneNode(p.Break):
		f.lacks("kms %s on one node: plugin.break has no {node} and nothing else that tells the nodes apart", k.Op)
	}
}

// ofOneNode reports whether a hook differs from node to node.
func ofOneNode(hook string) bool { return undertest.Has(hook, "node", "socket", "endpoint", "state") }

// separates reports whether a template differs for each key of a scenario.
func separates(s *scenario.Scenario, template string) bool {
	return undertest.Has(template, "shared", "state") || undertest.Has(template, "keyID") && len(s.Topology.Aggregated()) == 0
}

// lags reports whether any plugin is to notice a rotation late.
func lags(l scenario.Lag) bool {
	late := func(d scenario.Duration) bool { return !d.IsZero() && d.Text != "0s" }
	for _, d := range l.Nodes {
		if late(d) {
			return true
		}
	}
	return late(l.All)
}

// keyIDs are those of all plugins that a scenario ever has.
func keyIDs(s *scenario.Scenario) []string {
	all := live.KeyIDs(s)
	for _, a := range s.Actions() {
		switch a := a.(type) {
		case *scenario.Encryption:
			if encryption.Type(a.Type) == encryption.KMS {
				all = append(all, a.KeyIDs...)
			}
		case *scenario.Process:
			if a.Unlisted {
				all = append(all, a.Target.KeyID)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

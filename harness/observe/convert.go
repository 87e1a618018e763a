package observe

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// source of all events but the states of objects.
const source = "observe"

// Containers of a kube-apiserver's pod.
const (
	apiServerContainer = "kube-apiserver"
	reporterContainer  = "health-reporter" // is a part of it
)

// recorder records what changes.
type recorder struct {
	options Options
	sink    *history.Log
	caches  caches
	http    *http.Client
	dynamic dynamic.Interface
	rest    *rest.RESTClient
	keys    metadata.ResourceInterface

	mu       sync.Mutex
	began    bool
	expected history.Expected
	decision history.Decision
	holder   string
	up       map[history.Process]bool
	reports  map[string]string // what the report of a node was, to see when it changes
}

// Record takes states of objects from the watches. The first change of a node's report shows that its reporter runs.
func (r *recorder) Record(at time.Time, from string, payload any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := payload.(*history.Object); ok && strings.HasPrefix(o.Resource, r.options.Operator.Resource+".") {
		reports := reportsOf(o)
		for _, node := range slices.Sorted(maps.Keys(reports)) {
			if reports[node] != r.reports[node] && r.expects(node) {
				r.set(at, history.Process{Role: history.RoleReporter, Node: node}, true)
			}
		}
		r.reports = reports
	}
	r.sink.Record(at, from, payload)
}

// reportsOf is the text of each node's report, in either form.
func reportsOf(o *history.Object) map[string]string {
	all := map[string]string{}
	for _, c := range o.Conditions {
		if node, ok := contract.NodeOfCondition(c.Type); ok {
			all[node] += c.Message
		}
	}
	for _, t := range o.HealthReports {
		all[t.NodeName] += t.KeyID + t.LastCheckedTime
	}
	return all
}

func (r *recorder) expects(node string) bool {
	return r.expected.KMSActive && slices.ContainsFunc(r.expected.Nodes, func(n history.ExpectedNode) bool { return n.Name == node })
}

// set records that a process runs, or no longer does, if that is news. r.mu is held.
func (r *recorder) set(at time.Time, p history.Process, up bool) {
	if was, known := r.up[p]; known && was == up {
		return
	}
	r.up[p] = up
	states := []string{history.ProcessExited}
	if up {
		states = []string{history.ProcessStarted, history.ProcessReady}
	}
	for _, state := range states {
		now := p
		now.State = state
		if !up {
			now.Detail = "as the API shows: its pod is gone or not ready"
		}
		r.sink.Record(at, source, &now)
	}
}

// update records what the caches show, once all of them are filled.
func (r *recorder) update() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.began {
		return
	}
	now := time.Now()
	nodes, ready := readNodes(r.caches.nodes.List())
	if x := (history.Expected{KMSActive: r.active(), Nodes: nodes}); !reflect.DeepEqual(x, r.expected) {
		r.expected = x
		r.sink.Record(now, source, &x)
	}
	r.processes(now, ready)
	if r.caches.leases != nil {
		r.lead(now, holderOf(r.caches.leases.List()))
	}
	if r.caches.keys == nil {
		return
	}
	var migrations []any
	for _, c := range r.caches.migrations {
		migrations = append(migrations, c.List()...)
	}
	if d := decisionOf(component(r.options.Operator), r.caches.keys.List(), migrations); d.Key != 0 && !reflect.DeepEqual(d, r.decision) {
		r.decision = d
		r.sink.Record(now, source, &d)
	}
}

// active reports whether KMS is the encryption type. A cluster without that configuration has KMS as long as anybody reports.
func (r *recorder) active() bool { return r.caches.config == nil || r.configured() }

func (r *recorder) configured() bool {
	if r.caches.config == nil {
		return false
	}
	for _, o := range r.caches.config.List() {
		kind, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "encryption", "type")
		return kind == "KMS"
	}
	return false
}

// processes records API servers and reporters by their containers. Where no pod is seen, a static pod of a cluster that is configured for KMS is taken
// to have a reporter: one that never writes would not be missed otherwise. r.mu is held.
func (r *recorder) processes(now time.Time, ready map[string]bool) {
	containers := readContainers(slices.Concat(r.caches.kubeadmPods.List(), r.caches.openshiftPods.List()))
	for _, node := range slices.Sorted(maps.Keys(containers)) {
		r.set(now, history.Process{Role: history.RoleAPIServer, Node: node}, containers[node].apiServer)
	}
	for _, n := range r.expected.Nodes {
		p := history.Process{Role: history.RoleReporter, Node: n.Name}
		c, known := containers[n.Name]
		static := !known && r.configured() && r.options.Operator.Name == core.Operators()[0].Name
		if _, seen := r.up[p]; !seen && ready[n.Name] && r.expected.KMSActive && (c.reporter || static) {
			r.set(now, p, true)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(r.up), func(a, b history.Process) int { return strings.Compare(a.Role+a.Node, b.Role+b.Node) }) {
		c, known := containers[p.Node]
		if r.up[p] && (p.Role == history.RoleAPIServer && !known || p.Role == history.RoleReporter && (!r.expects(p.Node) || !ready[p.Node] || known && c.reporterEnded)) {
			r.set(now, p, false)
		}
	}
}

// lead records that another aggregator leads: it begins with an empty memory. r.mu is held.
func (r *recorder) lead(now time.Time, holder string) {
	p := history.Process{Role: history.RoleAggregator}
	if holder != r.holder && r.up[p] {
		r.set(now, p, false)
	}
	r.holder = holder
	r.set(now, p, holder != "")
}

// readNodes are the nodes in the order of their names, and which are ready.
func readNodes(items []any) (nodes []history.ExpectedNode, ready map[string]bool) {
	ready, nodes = map[string]bool{}, []history.ExpectedNode{}
	for _, item := range items {
		u := item.(*unstructured.Unstructured)
		nodes = append(nodes, history.ExpectedNode{Name: u.GetName(), Since: u.GetCreationTimestamp().UTC()})
		ready[u.GetName()] = true
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
				ready[u.GetName()] = c["status"] == "True"
			}
		}
	}
	slices.SortFunc(nodes, func(a, b history.ExpectedNode) int { return strings.Compare(a.Name, b.Name) })
	return nodes, ready
}

// containers are those of a node's pod.
type containers struct{ apiServer, reporter, reporterEnded bool }

func readContainers(items []any) map[string]containers {
	all := map[string]containers{}
	for _, item := range items {
		u := item.(*unstructured.Unstructured)
		node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		statuses, _, _ := unstructured.NestedSlice(u.Object, "status", "containerStatuses")
		sidecars, _, _ := unstructured.NestedSlice(u.Object, "status", "initContainerStatuses")
		c := all[node]
		for _, s := range slices.Concat(statuses, sidecars) {
			s, _ := s.(map[string]any)
			name, _ := s["name"].(string)
			_, running, _ := unstructured.NestedMap(s, "state", "running")
			switch {
			case name == apiServerContainer:
				c.apiServer = s["ready"] == true
			case strings.Contains(name, reporterContainer):
				c.reporter, c.reporterEnded = running, !running
			}
		}
		all[node] = c
	}
	return all
}

func holderOf(items []any) (holder string) {
	for _, item := range items {
		holder, _, _ = unstructured.NestedString(item.(*unstructured.Unstructured).Object, "spec", "holderIdentity")
	}
	return holder
}

// component is the API server of an operator, as key Secrets name it.
func component(op core.Operator) revision.Component {
	switch op.Name {
	case "openshiftapiserver":
		return revision.OpenShiftAPIServer
	case "authentication":
		return revision.OAuthAPIServer
	}
	return revision.KubeAPIServer
}

// decisionOf is what the annotations of key Secrets say, and which migrations are not over. The pre-flight check's kekID is left out: no journal shows what
// that check saw.
func decisionOf(c revision.Component, items, migrations []any) (d history.Decision) {
	for _, item := range items {
		m := item.(*metav1.PartialObjectMetadata)
		id, err := strconv.ParseUint(strings.TrimPrefix(m.Name, revision.KeyPrefix(c)), 10, 64)
		if err != nil {
			continue // a configuration, or somebody else's
		}
		d.Keys = append(d.Keys, id)
		if id >= d.Key {
			d.Key, d.ConvergedKEK, d.MigratedKEK = id, m.Annotations[revision.ConvergedKEKAnnotation], m.Annotations[revision.KEKAnnotation]
		}
	}
	slices.Sort(d.Keys)
	for _, item := range migrations {
		m := item.(*unstructured.Unstructured)
		if m.GetAnnotations()[revision.WriteKeyAnnotation] == strconv.FormatUint(d.Key, 10) && !meta.IsStatusConditionTrue(revision.ConditionsOf(m), revision.MigrationSucceeded) {
			d.Rewriting = append(d.Rewriting, m.GetName())
		}
	}
	slices.Sort(d.Rewriting)
	return d
}

package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// podLabels has the labels of the pods of a Deployment, by their names, and gives each Service an address.
type podLabels map[string]map[string]string

func (all podLabels) Create(_ context.Context, o k8s.Object, _ ...resources.CreateOption) error {
	s, ok := o.(*corev1.Service)
	if !ok || s.Namespace != aggregators {
		return fmt.Errorf("%T of the namespace %s was made", o, o.GetNamespace())
	}
	s.Spec.ClusterIP = "10.96.0." + s.Spec.Selector[labelReplica]
	return nil
}

func (all podLabels) Patch(_ context.Context, o k8s.Object, patch k8s.Patch, _ ...resources.PatchOption) error {
	var change corev1.Pod
	if err := json.Unmarshal(patch.Data, &change); err != nil || o.GetNamespace() != aggregators || patch.PatchType != types.MergePatchType {
		return fmt.Errorf("%s/%s: %s of type %s: %w", o.GetNamespace(), o.GetName(), patch.Data, patch.PatchType, err)
	}
	maps.Copy(all[o.GetName()], change.Labels)
	return nil
}

// A Service selects the pod of its replica, also after another pod has taken its place.
func TestServicesSelectThePodsOfTheirReplicas(t *testing.T) {
	client := podLabels{}
	for _, name := range []string{"a", "b", "c"} {
		client[name] = map[string]string{labelAggregator: aggregators}
	}
	d := newDeployment(aggregators, history.RoleAggregator, 2, t.TempDir(), &units{})
	if err := d.serveStreams(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if got := len(d.addresses()); got != 2 {
		t.Errorf("%d addresses, expected one for each replica", got)
	}
	for _, pods := range []map[string]string{{"a": "cp-1", "b": "cp-1"}, {"b": "cp-1", "c": "cp-2"}} {
		if err := d.put(pods); err != nil {
			t.Fatal(err)
		}
		if err := d.label(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		for i, r := range d.replicas {
			if selector := labels.SelectorFromSet(d.service(i + 1).Spec.Selector); !selector.Matches(labels.Set(client[r.pod])) {
				t.Errorf("%s does not select %s with the labels %v", selector, r.pod, client[r.pod])
			}
		}
	}
}

func TestNoAddressesWithoutStreams(t *testing.T) {
	if got := newDeployment(aggregators, history.RoleAggregator, 2, t.TempDir(), &units{}).addresses(); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// The rules tell the streams to a replica from those to the others by the address of its Service, which packets lose on the node.
func TestLinksOfStreams(t *testing.T) {
	ls := testLinks(lbIP)
	ls.deployment.replicas = []*replica{{streams: "10.96.0.7:9443"}, {streams: "10.96.0.8:9443"}}
	ways, err := ls.waysOf(history.Link{From: "reporter", To: "aggregator", Node: "cp-2"})
	if err != nil || len(ways) != 2 {
		t.Fatalf("%+v, %v", ways, err)
	}
	const second = "-p tcp --dport 9443 -m conntrack --ctorigdst 10.96.0.8 -m owner --uid-owner 65532"
	var got []string
	for _, r := range ways[1].rules(netfault.Fault{Mode: netfault.Mute}, "7777") {
		got = append(got, strings.Join(r, " "))
	}
	if want := []string{"nat OUTPUT " + second + turned, "filter OUTPUT " + second + " -j DROP"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if command, err := ways[1].proxyCommand(slow); err != nil || !strings.Contains(strings.Join(command, " "), "--upstream 10.96.0.8:9443 --ready /var/lib/kmsharness/proxies/reporter-aggregator-2.addr") {
		t.Errorf("proxy %s", command)
	}
	if _, err := testLinks(lbIP).waysOf(history.Link{From: "reporter", To: "aggregator", Node: "cp-2"}); err == nil {
		t.Error("there is a link to an aggregator that serves no streams")
	}
}

// A node that reaches one replica, or is refused by it, has what it needs; one that nothing answers waits.
func TestANodeWaitsForItsWayToTheAggregators(t *testing.T) {
	for name, c := range map[string]struct {
		docker string
		well   bool
	}{
		"connected":          {"exit 0\n", true},
		"refused":            {"echo 'bash: connect: Connection refused' >&2; exit 1\n", true},
		"the second answers": {"case \"$*\" in *10.96.0.8*) exit 0;; esac; exit 124\n", true},
		"nothing answers":    {"exit 124\n", false},
	} {
		fakeDocker(t, c.docker)
		p := &controlPlane{aggregators: newDeployment(aggregators, history.RoleAggregator, 2, "", nil)}
		p.aggregators.replicas[0].streams, p.aggregators.replicas[1].streams = "10.96.0.7:9443", "10.96.0.8:9443"
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := p.aggregators.awaitStreams(ctx, p.container("cp-1")); (err == nil) != c.well {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

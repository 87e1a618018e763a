package kind

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

const (
	lbIP     = "9.9.9.9"
	reporter = "-p tcp --dport 6443 -m owner --uid-owner 65532"
	toLB     = "-p tcp -d 9.9.9.9 --dport 6443 -m owner --uid-owner 65532"
	etcdWay  = "-p tcp -d 127.0.0.1 --dport 2379 -m owner ! --uid-owner 65531"
	lbWay    = "-p tcp -s 9.9.9.9 --dport 6443"
	podsHA   = "-p tcp -d 9.9.9.9 --dport 6443"
	podsSNO  = "-p tcp ! -i lo -s 10.244.0.0/16 --dport 6443 -m conntrack --ctorigdstport 6443"
	etcdBack = "-p tcp -s 127.0.0.1 --sport 2379 -j DROP"
	lbBack   = "-p tcp -d 9.9.9.9 --sport 6443 -j DROP"
	backHA   = "-p tcp -s 9.9.9.9 --sport 6443 -j DROP"
	backSNO  = "-p tcp ! -o lo -d 10.244.0.0/16 --sport 6443 -m conntrack --ctorigdstport 6443 -j DROP"
	rst      = " -j REJECT --reject-with tcp-reset"
	turned   = " -j REDIRECT --to-ports 7777"
)

var slow = netfault.Fault{Mode: netfault.Slow, Delay: 150 * time.Millisecond}

// These are all words that the packet filter is told for a fault of a link, in order.
func TestRulesOfLinks(t *testing.T) {
	cut, reset, mute := netfault.Fault{Mode: netfault.Cut}, netfault.Fault{Mode: netfault.Reset}, netfault.Fault{Mode: netfault.Mute}
	onReporter, onEtcd := history.Link{From: "reporter", To: "apiserver", Node: "cp-2"}, history.Link{From: "apiserver", To: "etcd", Node: "cp-1"}
	onLB, fromPods := history.Link{From: "load-balancer", To: "apiserver", Node: "cp-1"}, history.Link{From: "aggregator", To: "load-balancer"}
	onAny := history.Link{From: "reporter", To: "load-balancer", Node: "cp-2"}
	whole := history.Link{From: history.RoleNode, To: history.Network, Node: "cp-2"}
	for _, c := range []struct {
		lb   string
		l    history.Link
		f    netfault.Fault
		want []string
	}{
		{"", onReporter, netfault.Fault{}, nil},
		{"", onReporter, cut, []string{"c2: filter OUTPUT " + reporter + " -j DROP"}},
		{"", onReporter, reset, []string{"c2: filter OUTPUT " + reporter + rst}},
		{"", onReporter, mute, []string{"c2: nat OUTPUT " + reporter + turned, "c2: filter OUTPUT " + reporter + " -j DROP"}},
		{"", onReporter, slow, []string{"c2: nat OUTPUT " + reporter + turned, "c2: filter OUTPUT " + reporter + rst}},
		{lbIP, onAny, cut, []string{"c2: filter OUTPUT " + toLB + " -j DROP"}},
		{lbIP, onAny, mute, []string{"c2: nat OUTPUT " + toLB + turned, "c2: filter OUTPUT " + toLB + " -j DROP"}},
		{"", onEtcd, cut, []string{"c1: filter OUTPUT " + etcdWay + " -j DROP", "c1: filter OUTPUT " + etcdBack}},
		{"", onEtcd, slow, []string{"c1: nat OUTPUT " + etcdWay + turned, "c1: filter OUTPUT " + etcdWay + rst}},
		{"", onEtcd, netfault.Fault{Mode: netfault.Cut, Direction: netfault.Requests}, []string{"c1: filter OUTPUT " + etcdWay + " -j DROP"}},
		{"", onEtcd, netfault.Fault{Mode: netfault.Cut, Direction: netfault.Answers}, []string{"c1: filter OUTPUT " + etcdBack}},
		{"", onReporter, netfault.Fault{Mode: netfault.SlowHandshake, Delay: 1}, []string{"c2: nat OUTPUT " + reporter + turned}},
		{"", onReporter, netfault.Fault{Mode: netfault.Lossy, Loss: 1}, []string{"c2: nat OUTPUT " + reporter + turned, "c2: filter OUTPUT " + reporter + rst}},
		{lbIP, whole, cut, []string{"c2: filter INPUT ! -i lo -j DROP", "c2: filter OUTPUT ! -o lo -j DROP", "c2: filter FORWARD -j DROP"}},
		{lbIP, whole, netfault.Fault{}, nil},
		{lbIP, onLB, reset, []string{"c1: filter INPUT " + lbWay + rst}},
		{lbIP, onLB, mute, []string{"c1: nat PREROUTING " + lbWay + turned, "c1: filter INPUT " + lbWay + " -j DROP", "c1: filter OUTPUT " + lbBack}},
		{lbIP, fromPods, cut, []string{"c1: filter FORWARD " + podsHA + " -j DROP", "c1: filter FORWARD " + backHA,
			"c2: filter FORWARD " + podsHA + " -j DROP", "c2: filter FORWARD " + backHA}},
		{lbIP, fromPods, slow, []string{"c1: nat PREROUTING " + podsHA + turned, "c1: filter FORWARD " + podsHA + rst,
			"c2: nat PREROUTING " + podsHA + turned, "c2: filter FORWARD " + podsHA + rst}},
		{"", fromPods, mute, []string{"c1: nat PREROUTING " + podsSNO + turned, "c1: filter INPUT " + podsSNO + " -j DROP", "c1: filter OUTPUT " + backSNO,
			"c2: nat PREROUTING " + podsSNO + turned, "c2: filter INPUT " + podsSNO + " -j DROP", "c2: filter OUTPUT " + backSNO}},
	} {
		ways, err := testLinks(c.lb).waysOf(c.l)
		var got []string
		for _, w := range ways {
			for _, r := range w.rules(c.f, "7777") {
				got = append(got, string(w.container)+": "+strings.Join(r, " "))
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v %+v: %v\ngot  %q\nwant %q", c.l, c.f, err, got, c.want)
		}
	}
}

// The load balancer leads to the fronts, if there are any.
func TestLinkToAFront(t *testing.T) {
	ls := testLinks(lbIP)
	ls.lb.fronts = true
	ways, err := ls.waysOf(history.Link{From: "load-balancer", To: "apiserver", Node: "cp-1"})
	if held := strings.Join(ways[0].held, " "); held != "dst 9.9.9.9 and sport = :6444" {
		t.Errorf("held %q", held)
	}
	if err != nil || len(ways) != 1 || ways[0].upstream != "127.0.0.1:6444" || !slices.Contains(ways[0].match, portFront) || !slices.Contains(ways[0].back, portFront) {
		t.Errorf("%+v, %v", ways, err)
	}
}

// What the kernel keeps of an aggregator's requests is in the network namespace of its pod.
func TestSocketsThatEndWithAFault(t *testing.T) {
	fromPods, onReporter := history.Link{From: "aggregator", To: "load-balancer"}, history.Link{From: "reporter", To: "load-balancer", Node: "cp-1"}
	for _, c := range []struct {
		lb   string
		l    history.Link
		pods bool
		want string
	}{
		{lbIP, fromPods, true, "sh ss --kill --tcp --numeric dst 9.9.9.9 and dport = :6443"},
		{"", fromPods, true, "sh ss --kill --tcp --numeric dport = :6443"},
		{lbIP, onReporter, false, "ss --kill --tcp --numeric dst 9.9.9.9 and dport = :6443"},
	} {
		ways, err := testLinks(c.lb).waysOf(c.l)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(ways[0].killCommand(), " ")
		if !strings.HasSuffix(got, c.want) || c.pods != strings.Contains(got, "nsenter --net=") {
			t.Errorf("%+v: %s, want %s", c.l, got, c.want)
		}
	}
}

func TestLinksThatDoNotExist(t *testing.T) {
	for _, l := range []history.Link{{From: "load-balancer", To: "apiserver", Node: "cp-1"}, {From: "reporter", To: "load-balancer", Node: "cp-1"}, {From: "reporter", To: "apiserver", Node: "cp-9"}, {From: "reporter", To: "etcd", Node: "cp-1"}} {
		if ways, err := testLinks("").waysOf(l); err == nil {
			t.Errorf("%+v: %+v", l, ways)
		}
		if err := testLinks("").SetLink(context.Background(), l, slow); err == nil {
			t.Errorf("%+v was made slow", l)
		}
	}
	if err := testLinks("").SetLink(context.Background(), history.Link{From: "reporter", To: "apiserver", Node: "cp-1"}, netfault.Fault{Mode: netfault.Slow}); err == nil {
		t.Error("a link was made slow by nothing")
	}
}

// A proxy must not be turned to itself: it goes on as another user than those whose connections are turned, or on a way that
// starts elsewhere.
func TestProxiesOfLinks(t *testing.T) {
	for want, l := range map[string]history.Link{
		"--upstream 127.0.0.1:6443 --ready /var/lib/kmsharness/proxies/reporter-apiserver.addr":      {From: "reporter", To: "apiserver", Node: "cp-1"},
		"--upstream 9.9.9.9:6443 --ready /var/lib/kmsharness/proxies/reporter-load-balancer.addr":    {From: "reporter", To: "load-balancer", Node: "cp-1"},
		"--upstream 127.0.0.1:2379 --ready /var/lib/kmsharness/proxies/apiserver-etcd.addr":          {From: "apiserver", To: "etcd", Node: "cp-1"},
		"--upstream 127.0.0.1:6443 --ready /var/lib/kmsharness/proxies/load-balancer-apiserver.addr": {From: "load-balancer", To: "apiserver", Node: "cp-1"},
		"--upstream 9.9.9.9:6443 --ready /var/lib/kmsharness/proxies/aggregator-load-balancer.addr":  {From: "aggregator", To: "load-balancer"},
	} {
		ways, err := testLinks(lbIP).waysOf(l)
		if err != nil {
			t.Fatal(err)
		}
		command, err := ways[0].proxyCommand(slow)
		if words := strings.Join(command[4:], " "); err != nil || words != "/var/lib/kmsharness-shared/kmsharness-proxy "+want+` --fault {"mode":"slow","delay":150000000}` {
			t.Errorf("%+v: %s, %v", l, words, err)
		}
	}
}

// A node that has gone took its rules with it, and one of the same name has none.
func TestFaultsOfANodeThatHasGone(t *testing.T) {
	p := testLinks("")
	l := history.Link{From: "reporter", To: "apiserver", Node: "cp-1"}
	w := way{link: l, node: "cp-1", container: "an-earlier-one"}
	p.broken = map[history.Link][]*breakage{l: {{way: w, rules: w.rules(slow, "7777"), proxy: true}}}
	if err := p.SetLink(context.Background(), l, netfault.Fault{}); err != nil || len(p.broken) != 0 {
		t.Errorf("%v, %v is left", err, p.broken)
	}
}

func testLinks(lb string) *links {
	ls := &links{lb: &loadBalancer{ip: lb}, deployment: &deployment{}, nodes: &cluster.Nodes{}, broken: map[history.Link][]*breakage{},
		machines: &machines{all: map[string]machine{"cp-1": {container: "c1"}, "cp-2": {container: "c2"}}}}
	ls.nodes.Add(&cluster.Node{Name: "cp-1"})
	ls.nodes.Add(&cluster.Node{Name: "cp-2"})
	return ls
}

// TestProxiesHaveAFolder: a proxy is another user than root, and writes where it accepts.
func TestProxiesHaveAFolder(t *testing.T) {
	n := nodeLayout{t.TempDir()}
	if err := n.prepare(cluster.Encryption{}); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(n.file(way{}.proxyFile()))
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("%s: %v, %v: a proxy cannot write into it", folder, info, err)
	}
}

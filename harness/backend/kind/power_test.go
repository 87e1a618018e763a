package kind

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// firstFree gives the lowest free address, as the engine does.
type firstFree struct {
	taken map[netip.Addr]string // by whom
	made  int
	broke error
}

func newNetwork(taken ...int) *firstFree {
	n := &firstFree{taken: map[netip.Addr]string{}}
	for _, i := range taken {
		n.taken[addr(i)] = "somebody"
	}
	return n
}

func addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{172, 18, 0, byte(i)}) }

func (n *firstFree) hold(context.Context) (string, netip.Addr, error) {
	if n.broke != nil {
		return "", netip.Addr{}, n.broke
	}
	n.made++
	id := fmt.Sprint("placeholder-", n.made)
	return id, n.start(id), nil
}

// start gives an address to a container.
func (n *firstFree) start(name string) netip.Addr {
	for i := 2; ; i++ {
		if at := addr(i); n.taken[at] == "" {
			n.taken[at] = name
			return at
		}
	}
}

func (n *firstFree) drop(_ context.Context, id string) error {
	for at, by := range n.taken {
		if by == id {
			delete(n.taken, at)
			return nil
		}
	}
	return errors.New("there is no " + id)
}

func (n *firstFree) String() string {
	var all []string
	for at, by := range n.taken {
		if by, _, _ = strings.Cut(by, "-"); by != "somebody" {
			all = append(all, fmt.Sprintf("%s %s", at, by))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Two of three nodes lose their power while others come and go, and get their addresses again.
func TestNodesGetTheirAddressesAgain(t *testing.T) {
	ctx := context.Background()
	engine := newNetwork(2, 3, 4, 6)
	delete(engine.taken, addr(4)) // the nodes had 3, 4, 6; those of 4 and 6 lose their power
	delete(engine.taken, addr(6))
	a := newAddresses(engine)
	if err := a.keep(ctx, addr(4), addr(6)); err != nil || engine.String() != "172.18.0.4 placeholder, 172.18.0.6 placeholder" {
		t.Fatalf("kept: %s, %v", engine, err)
	}
	delete(engine.taken, addr(2)) // somebody goes: a lower address is free
	if err := a.fill(ctx, addr(4), addr(6)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []netip.Addr{addr(4), addr(6)} {
		if err := a.release(ctx, at); err != nil {
			t.Fatal(err)
		}
		if got := engine.start("node"); got != at {
			t.Errorf("a node got %s, want %s", got, at)
		}
	}
	if err := a.releaseAll(ctx); err != nil || engine.String() != "172.18.0.4 node, 172.18.0.6 node" || len(a.held) != 0 {
		t.Errorf("at the end: %s, %v", engine, err)
	}
}

// Without placeholders, the address goes to whoever comes first: that is what they are for.
func TestAnAddressThatIsTaken(t *testing.T) {
	ctx := context.Background()
	a := newAddresses(newNetwork(2, 3, 4))
	if err := a.keep(ctx, addr(3)); err == nil || !strings.Contains(err.Error(), "172.18.0.3 of a node was given to another container") {
		t.Error(err)
	}
	broke := newNetwork()
	broke.broke = errors.New("no space left")
	if err := newAddresses(broke).keep(ctx, addr(3)); err == nil || !strings.Contains(err.Error(), "placeholder for the address of a node: no space left") {
		t.Error(err)
	}
	if err := newAddresses(newNetwork()).keep(ctx, addr(200)); err == nil || !strings.Contains(err.Error(), "64 placeholders") {
		t.Error(err)
	}
}

func TestByAddress(t *testing.T) {
	at := map[string]string{"cp-1": "172.18.0.10", "cp-2": "172.18.0.9", "cp-3": "172.18.0.2"}
	var names []string
	for _, n := range byAddress([]*live.Node{{Name: "cp-1"}, {Name: "cp-2"}, {Name: "cp-3"}}, func(n string) string { return at[n] }) {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "cp-3 cp-2 cp-1" {
		t.Error(got)
	}
}

// A container that has ended is known for a while; one of another pod may run.
func TestRunningTasks(t *testing.T) {
	const containers = "aa11\nbb22\ncc33\n"
	const tasks = "TASK    PID     STATUS    \nbb22    204     RUNNING\naa11    0       STOPPED\nff99    77      RUNNING\ncc33    9       PAUSED\n"
	if got := strings.Join(runningTasks(containers, tasks), " "); got != "bb22 cc33" {
		t.Errorf("%q", got)
	}
	for _, tasks := range []string{"", "TASK    PID     STATUS    \n", "ctr: connection refused"} {
		if got := runningTasks(containers, tasks); len(got) != 0 {
			t.Errorf("%q: %v", tasks, got)
		}
	}
}

func TestContainerOf(t *testing.T) {
	for want, p := range map[string]live.Target{
		"kube-apiserver apiserver":      {Identity: history.Process{Role: history.RoleAPIServer}},
		"kms-health-reporter reporter":  {Identity: history.Process{Role: history.RoleReporter}},
		"vault-kms-plugin-2 plugin-2":   {Unit: &held{name: "plugin-2"}, Identity: history.Process{Role: history.RolePlugin, KeyID: "5"}},
		"error: role etcd has no conta": {Identity: history.Process{Role: history.RoleEtcd}},
	} {
		name, unit, err := containerOf(p)
		got := name + " " + unit
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
	if got := containerFilters("kube-apiserver-cp-1", "kube-apiserver"); len(got) != 1 ||
		got[0] != `labels."io.kubernetes.pod.name"==kube-apiserver-cp-1,labels."io.kubernetes.container.name"==kube-apiserver` {
		t.Error(got)
	}
}

func TestLedger(t *testing.T) {
	var l ledger
	say := func(node, unit, state string) { l.note(unitOn{node, unit}, history.Process{Role: unit, State: state}) }
	say("cp-1", "reporter", history.ProcessStarted)
	say("cp-1", "plugin-1", history.ProcessPaused)
	say("cp-1", "plugin-2", history.ProcessStarted)
	say("cp-1", "plugin-2", history.ProcessStopped)
	say("cp-1", "apiserver", history.ProcessExited)
	say("cp-2", "apiserver", history.ProcessStarted)
	units := func(node string) string {
		var all []string
		for _, e := range l.living(func(k unitOn) bool { return k.dir == node }) {
			all = append(all, e.unit)
		}
		return strings.Join(all, " ")
	}
	if got := units("cp-1"); got != "plugin-1 reporter" {
		t.Errorf("living: %s", got)
	}
	l.forget("cp-1")
	if units("cp-1") != "" || units("cp-2") != "apiserver" {
		t.Errorf("after cp-1 went: %q, %q", units("cp-1"), units("cp-2"))
	}
	for unit, want := range map[string]bool{"apiserver": true, "reporter": true, "plugin-2": true, "aggregator-kms-x": false} {
		if inPod(unit) != want {
			t.Errorf("%s in the API server's pod: %t", unit, !want)
		}
	}
}

// Of a node that lost its power only what lived is told to have ended, and only that comes back.
func TestWhatIsToldOfANode(t *testing.T) {
	p := &plane{Host: live.NewHost(nil, ""), journals: tail.NewSet(), layout: layout{"/k1"}, aggregators: []*seat{{name: "a", node: "cp-1"}, {name: "b", node: "cp-2"}}}
	defer func() { _ = p.Supervisor.Close(context.Background()) }()
	var told []string
	p.Listen(func(at time.Time, payload any) {
		c := payload.(*history.Process)
		told = append(told, fmt.Sprint(at.Unix(), " ", c.Role, " ", c.State))
	})
	for _, pod := range []string{"a", "b"} {
		p.ledger.note(unitOn{"/k1/s", unitOfAggregator(pod)}, history.Process{Role: "aggregator " + pod, State: history.ProcessStarted})
	}
	p.ledger.note(unitOn{"/k1/cp-1/state", "plugin-1"}, history.Process{Role: "plugin", State: history.ProcessStopped})
	p.ledger.note(unitOn{"/k1/cp-1/state", "reporter"}, history.Process{Role: "reporter", State: history.ProcessStarted})
	p.ledger.note(unitOn{"/k1/cp-2/state", "reporter"}, history.Process{Role: "reporter", State: history.ProcessStarted})
	for range 2 { // the second time nothing is left
		if err := p.lose(history.RoleNode, "cp-1", time.Unix(7, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(told, ", "); got != "7 aggregator a killed, 7 reporter killed" {
		t.Errorf("told %s", got)
	}
	if lost := p.takeLost(history.RoleNode, "cp-1"); len(lost) != 2 || lost[1].unit != "reporter" {
		t.Errorf("lost %v", lost)
	}
	if lost := p.takeLost(history.RoleNode, "cp-1"); len(lost) != 0 {
		t.Errorf("lost twice: %v", lost)
	}
}

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

	"github.com/kmsharness/kmsharness/harness/cluster"
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
	m := machines{all: map[string]machine{"cp-1": {address: "172.18.0.10"}, "cp-2": {address: "172.18.0.9"}, "cp-3": {address: "172.18.0.2"}}}
	sorted, addresses, err := m.byAddress([]*cluster.Node{{Name: "cp-1"}, {Name: "cp-2"}, {Name: "cp-3"}})
	var names []string
	for _, n := range sorted {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); err != nil || got != "cp-3 cp-2 cp-1" || addresses[0] != addr(2) {
		t.Error(got, addresses, err)
	}
	if _, _, err := m.byAddress([]*cluster.Node{{Name: "cp-9"}}); err == nil {
		t.Error("a node without an address was sorted")
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

func TestUnitOf(t *testing.T) {
	for want, p := range map[string]cluster.Target{
		"apiserver":                     {Identity: history.Process{Role: history.RoleAPIServer}},
		"reporter":                      {Identity: history.Process{Role: history.RoleReporter}},
		"plugin-2":                      {Unit: &held{unitKey: unitKey{"", "plugin-2"}}, Identity: history.Process{Role: history.RolePlugin, KeyID: "5"}},
		"plugin-3-under-test":           {Unit: underTestIn("", "plugin-3"), Identity: history.Process{Role: history.RolePlugin, KeyID: "6"}},
		"error: role etcd has no conta": {Identity: history.Process{Role: history.RoleEtcd}},
	} {
		got, err := unitOf(p)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
	if got := containerFilter(labelPod, staticPod("cp-1"), "kube-apiserver"); got !=
		`labels."io.kubernetes.pod.name"==kube-apiserver-cp-1,labels."io.kubernetes.container.name"==kube-apiserver` {
		t.Error(got)
	}
}

// A restart kills the container by the name that it has in its pod.
func TestRestartContainerNamesTheContainer(t *testing.T) {
	dir := t.TempDir()
	fakeDocker(t, `echo "$*" >>`+dir+`/calls`)
	p := fleetsOf(t)
	plugin := cluster.Target{Unit: &held{unitKey: unitKey{dir, "plugin-2"}}, Identity: history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: "5"}}
	behind := cluster.Target{Unit: underTestIn(dir, "plugin-1"), Identity: history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: "7"}}
	apiServer := cluster.Target{Identity: history.Process{Role: history.RoleAPIServer, Node: "cp-1"}}
	for _, c := range []struct {
		restart func(context.Context, cluster.Target, func(*cluster.Target)) error
		target  cluster.Target
		want    string
	}{
		{kubePods{p}.RestartContainer, plugin, "pod.name\"==kube-apiserver-cp-1,labels.\"io.kubernetes.container.name\"==vault-kms-plugin-2"},
		{kubePods{p}.RestartContainer, behind, "io.kubernetes.container.name\"==vault-kms-plugin-1-under-test"},
		{kubePods{p}.RestartContainer, apiServer, "container.name\"==kube-apiserver"},
		{p.fleets[0].RestartContainer, plugin, "pod.namespace\"==openshift-apiserver,labels.\"io.kubernetes.container.name\"==vault-kms-plugin-2"},
		{p.fleets[0].RestartContainer, apiServer, "container.name\"==apiserver"},
	} {
		err := c.restart(t.Context(), c.target, nil) // there is none
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// newTable is a table of units that appends what it passes on to told.
func newTable(told *[]string) *units {
	return &units{journals: tail.NewSet(), rows: map[unitKey]*unitState{}, sink: func(at time.Time, p history.Process) {
		*told = append(*told, fmt.Sprint(at.Unix(), " ", p.Role, " ", p.State))
	}}
}

// put makes a unit known in a state.
func put(t *testing.T, u *units, node string, k unitKey, state string) {
	t.Helper()
	p := history.Process{Role: k.unit, State: state}
	if err := u.followOne(k, node, p); err != nil {
		t.Fatal(err)
	}
	u.record(time.Time{}, k, p)
}

func names(all []unitState) string {
	var names []string
	for _, s := range all {
		names = append(names, s.unit)
	}
	return strings.Join(names, " ")
}

func TestUnits(t *testing.T) {
	var told []string
	u := newTable(&told)
	put(t, u, "cp-1", unitKey{"/1/reporter", "reporter"}, history.ProcessStarted)
	put(t, u, "cp-1", unitKey{"/1", "plugin-1"}, history.ProcessPaused)
	put(t, u, "cp-1", unitKey{"/1", "plugin-2"}, history.ProcessStopped)
	put(t, u, "cp-1", unitKey{"/1", "apiserver"}, history.ProcessExited)
	put(t, u, "cp-1", unitKey{"/s", "aggregator-a"}, history.ProcessStarted)
	put(t, u, "cp-2", unitKey{"/2", "apiserver"}, history.ProcessStarted)
	if got := names(u.take(onNode("cp-1"), nil)); got != "aggregator-a plugin-1 reporter" {
		t.Errorf("on the node: %s", got)
	}
	if got := names(u.take(inDir("/1"), nil)); got != "plugin-1 reporter" {
		t.Errorf("in the pod: %s", got)
	}
	u.forget(func(s *unitState) bool { return s.pod() == "/1" })
	u.record(time.Time{}, unitKey{"/1/reporter", "reporter"}, history.Process{State: history.ProcessStarted})
	if got := names(u.take(onNode("cp-1"), nil)); got != "aggregator-a" {
		t.Errorf("after the pod went for good: %s", got)
	}
}

// Of a node that lost its power only what lived is told to have ended, and only that comes back.
func TestWhatIsToldOfANode(t *testing.T) {
	var told []string
	u := newTable(&told)
	put(t, u, "cp-1", unitKey{"/s", "aggregator-a"}, history.ProcessStarted)
	put(t, u, "cp-2", unitKey{"/s", "aggregator-b"}, history.ProcessStarted)
	put(t, u, "cp-1", unitKey{"/1", "plugin-1"}, history.ProcessStopped)
	put(t, u, "cp-1", unitKey{"/1", "reporter"}, history.ProcessStarted)
	put(t, u, "cp-2", unitKey{"/2", "reporter"}, history.ProcessStarted)
	told = nil
	for range 2 { // the second time nothing is left
		if err := u.nodeDied("cp-1", time.Unix(7, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(told, ", "); got != "7 aggregator-a killed, 7 reporter killed" {
		t.Errorf("told %s", got)
	}
	if got := names(u.regain(history.RoleNode, "cp-1")); got != "aggregator-a reporter" {
		t.Errorf("lost %s", got)
	}
	if got := names(u.regain(history.RoleNode, "cp-1")); got != "" {
		t.Errorf("lost twice: %s", got)
	}
}

// A node that stands still takes along what runs, and gives back what it took: what was paused before stays paused.
func TestWhatStandsStillWithANode(t *testing.T) {
	var told []string
	u := newTable(&told)
	put(t, u, "cp-1", unitKey{"/1", "plugin-1"}, history.ProcessPaused)
	put(t, u, "cp-1", unitKey{"/1", "reporter"}, history.ProcessReady)
	put(t, u, "cp-2", unitKey{"/2", "reporter"}, history.ProcessReady)
	told = nil
	u.freeze("cp-1", time.Unix(7, 0))
	u.thaw("cp-1", time.Unix(8, 0))
	u.thaw("cp-1", time.Unix(9, 0))
	if got := strings.Join(told, ", "); got != "7 reporter paused, 8 reporter resumed" {
		t.Errorf("told %s", got)
	}
	// One that is ended while its node stands still does not go on with it.
	u.freeze("cp-1", time.Unix(7, 0))
	if err := u.nodeDied("cp-1", time.Unix(8, 0)); err != nil {
		t.Fatal(err)
	}
	told = nil
	u.thaw("cp-1", time.Unix(9, 0))
	if len(told) > 0 {
		t.Errorf("told %s", told)
	}
}

package operand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// notedPods notes what is done to a pod.
type notedPods struct {
	Pods
	anew  bool
	calls []string
}

func (p *notedPods) note(format string, args ...any) error {
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
	return nil
}

func (p *notedPods) Anew() bool { return p.anew }
func (p *notedPods) StartPlugins(_ context.Context, _ string, plugins []revision.Plugin) error {
	return p.note("start %d", plugins[0].KeyID)
}
func (p *notedPods) StopPlugins(_ context.Context, _ string, ids []uint64) error {
	return p.note("stop %v", ids)
}
func (p *notedPods) Report(_ context.Context, _ string, ids []uint64) error {
	return p.note("report %v", ids)
}
func (p *notedPods) RollOut(_ context.Context, _ string, rev int, _ []byte) error {
	return p.note("roll out %d", rev)
}

// In a pod that stays, what a revision does not have ends after its API server has loaded the rest. A pod that is made anew gets all of it at once.
func TestInstall(t *testing.T) {
	before := core.Node{Up: true, Loaded: 2, Plugins: map[uint64]config.Plugin{1: {}}, Reporter: []uint64{1}}
	after := before
	after.Loaded = 3
	want := staticpods.Configuration{Plugins: []revision.Plugin{{KeyID: 2}}}
	for _, test := range []struct {
		anew         bool
		node         core.Node
		want, notYet string
	}{
		{false, before, "start 2, roll out 3", "not loaded"},
		{false, after, "start 2, report [2], stop [1]", ""},
		{true, before, "start 2, report [2], stop [1], roll out 3", "not loaded"},
		{true, after, "start 2, report [2], stop [1]", ""},
	} {
		pods := &notedPods{anew: test.anew}
		i := newInstaller(Options{Pods: pods})
		err := i.install(t.Context(), "cp-1", test.node, numbered{3, want})
		if got := strings.Join(pods.calls, ", "); got != test.want || errors.Is(err, errNotLoaded) != (test.notYet != "") {
			t.Errorf("anew %t, loaded %d: %s, %v, want %s", test.anew, test.node.Loaded, got, err, test.want)
		}
	}
}

// A node that was rolled back stays until there is another revision. One that could not be made anew is as before.
func TestRollBack(t *testing.T) {
	secret := func(n int) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: staticpods.ConfigName(n)}, Data: map[string][]byte{staticpods.ConfigKey: []byte("file")}}
	}
	pods := &notedPods{}
	i := newInstaller(Options{Pods: pods, Client: fake.NewClientset(secret(2), secret(3))})
	newest := &made{last: numbered{3, staticpods.Configuration{File: []byte("file"), Plugins: []revision.Plugin{{KeyID: 2}}}}}
	i.revisions, i.installed["cp-1"] = newest, 3
	if all, err := i.Revisions(t.Context()); err != nil || len(all) != 2 || string(all[2].File) != "file" {
		t.Fatalf("%v, %v", all, err)
	}
	if err := i.RollBack(t.Context(), "cp-1", 2, func() error { return errNotLoaded }); err == nil || i.installed["cp-1"] != 3 {
		t.Errorf("%v, it has revision %d", err, i.installed["cp-1"])
	}
	if err := i.RollBack(t.Context(), "cp-1", 2, func() error { return nil }); err != nil || i.installed["cp-1"] != 2 {
		t.Errorf("%v, it has revision %d", err, i.installed["cp-1"])
	}
	nodes := map[string]core.Node{"cp-1": {Up: true, Loaded: 2}}
	if err := i.roll(t.Context(), nodes); err != nil || len(pods.calls) > 0 {
		t.Errorf("%v, %v", err, pods.calls)
	}
	newest.last.number = 4
	if err := i.roll(t.Context(), nodes); !errors.Is(err, errNotLoaded) || len(pods.calls) == 0 {
		t.Errorf("%v, %v", err, pods.calls)
	}
}

// Each node of a whole operator has the revision that its own installer pod has installed. Until that has what the operator wants, nothing has converged.
func TestFollow(t *testing.T) {
	pod := func(node string, revision int) *corev1.Pod {
		p := operatorPod(appInstaller, fmt.Sprintf("installer-%d-%s", revision, node), node, corev1.PodPending, fmt.Sprintf("--revision=%d", revision))
		p.Namespace = Namespace
		return &p
	}
	file := map[string][]byte{staticpods.ConfigKey: []byte("file")}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: staticpods.ConfigName(3)}, Data: file}
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	client := fake.NewClientset(pod("cp-1", 3), pod("cp-2", 2), secret, node("cp-1"), node("cp-2"), node("cp-3"))
	f := newFollowed(Options{Client: client, Pods: &notedPods{}, Clock: clocktesting.NewFakeClock(time.Time{}), Log: slog.New(slog.DiscardHandler)})
	if err := f.look(t.Context(), map[string]core.Node{"cp-1": {}, "cp-2": {}, "cp-3": {Unavailable: true}}); err != nil {
		t.Fatal(err)
	}
	if err := f.want(t.Context(), secret, staticpods.Configuration{File: file[staticpods.ConfigKey]}); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]int{"cp-1": 3, "cp-2": 2, "cp-3": firstRevision} {
		if got := f.of(node); got.number != want || f.wanted(node) != (node == "cp-1") {
			t.Errorf("%s is to have revision %d, want %d; what is wanted: %t", node, got.number, want, f.wanted(node))
		}
	}
	for name, want := range map[string]corev1.ConditionStatus{"cp-1": corev1.ConditionTrue, "cp-3": corev1.ConditionUnknown} {
		if n, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil || len(n.Status.Conditions) != 1 || n.Status.Conditions[0].Status != want {
			t.Errorf("%s: %v, %v, want Ready %s", name, n.Status.Conditions, err, want)
		}
	}
	if newest := f.newest(); newest.number != 3 || string(newest.File) != "file" {
		t.Errorf("the newest is %+v", newest)
	}
	if f.forget("cp-1"); f.of("cp-1").number != firstRevision {
		t.Error("another node of that name would have its revision")
	}
}

// Where kubelets run, an installer pod is left alone, and so is the condition of its node.
func TestFollowKubelets(t *testing.T) {
	pod := operatorPod(appInstaller, "installer-2-cp-1", "cp-1", corev1.PodPending, "--revision=2")
	pod.Namespace = Namespace
	client := fake.NewClientset(&pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1"}})
	f := newFollowed(Options{Client: client, Pods: &notedPods{anew: true}, Clock: clocktesting.NewFakeClock(time.Time{}), Log: slog.New(slog.DiscardHandler)})
	look := func() int {
		if err := f.look(t.Context(), map[string]core.Node{"cp-1": {}}); err != nil {
			t.Fatal(err)
		}
		return f.of("cp-1").number
	}
	if got := look(); got != firstRevision {
		t.Errorf("revision %d of an installer pod that has not ended", got)
	}
	for _, a := range client.Actions() {
		if a.GetVerb() != "list" && a.GetVerb() != "get" {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
	pod.Status.Phase = corev1.PodSucceeded
	if _, err := client.CoreV1().Pods(Namespace).UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != 2 {
		t.Errorf("revision %d, want that of the installer pod that ended", got)
	}
}

// What has the label of the keys and another name is no key: this project's operator has its revisions so.
func TestKeysByName(t *testing.T) {
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ManagedNamespace, Name: name, Labels: map[string]string{revision.ComponentLabel: Component}}}
	}
	i := newInstaller(Options{Client: fake.NewClientset(secret(revision.KeyName(staticpods.Component, 2)), secret(revision.ConfigName(staticpods.Component, 3)), secret(staticpods.DesiredName))})
	if keys, err := i.readKeys(t.Context()); err != nil || len(keys) != 1 || keys[0].ID != 2 {
		t.Errorf("%v, %+v", err, keys)
	}
}

// claimedPods counts what an operator says of its migrations.
type claimedPods struct {
	Pods
	claims int
	fails  error
}

func (p *claimedPods) Migrated(context.Context) error { p.claims++; return p.fails }

// An operator says that everything lies under a key by the annotation of the key, and may take that back.
func TestClaims(t *testing.T) {
	secrets, maps := schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "configmaps"}
	key := func(id uint64, kek string, migrated ...schema.GroupResource) Key {
		return Key{ID: id, MigratedKEK: kek, Migrated: migrated}
	}
	both := &operated.RollOut{Resources: []string{"configmaps", "secrets"}}
	pods := &claimedPods{}
	i := newInstaller(Options{Pods: pods})
	for n, c := range []struct {
		keys    []Key
		desired *operated.RollOut
		claims  int // in all
	}{
		{nil, both, 0},
		{[]Key{key(1, "")}, both, 0},
		{[]Key{key(1, "", secrets, maps)}, nil, 0},
		{[]Key{key(1, "", secrets)}, both, 0},
		{[]Key{key(1, "", secrets, maps)}, both, 1},
		{[]Key{key(1, "", secrets, maps)}, both, 1},
		{[]Key{key(1, "", secrets, maps), key(2, "")}, both, 1},
		{[]Key{key(1, "", secrets, maps), key(2, "a", secrets, maps)}, both, 2},
		{[]Key{key(2, "a")}, both, 2}, // a pod of an older revision is back
		{[]Key{key(2, "a", secrets, maps)}, both, 3},
		{[]Key{key(2, "b", secrets, maps)}, both, 4}, // the KEK was rotated
	} {
		if err := i.reportClaim(t.Context(), c.desired, c.keys); err != nil || pods.claims != c.claims {
			t.Errorf("round %d: %v, %d claims, want %d", n, err, pods.claims, c.claims)
		}
	}
	news := []Key{key(3, "c", secrets, maps)}
	pods.fails = errors.New("no inventory")
	if err := i.reportClaim(t.Context(), both, news); !errors.Is(err, pods.fails) {
		t.Errorf("error %v, want %v", err, pods.fails)
	}
	pods.fails = nil
	if err := i.reportClaim(t.Context(), both, news); err != nil || pods.claims != 6 { // once more: nobody has heard of it
		t.Errorf("%v, %d claims, want 6", err, pods.claims)
	}
}

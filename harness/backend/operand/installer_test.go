package operand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// kubeAPIServer is what an installer of a test is for.
func kubeAPIServer() operator.APIServer {
	a, err := operator.APIServerOf("kubeapiserver")
	if err != nil {
		panic(err)
	}
	return a
}

// forTest are the options of a test, with pods.
func forTest(pods Pods, objects ...runtime.Object) Options {
	return Options{APIServer: kubeAPIServer(), Pods: pods, Client: fake.NewClientset(objects...), Clock: clocktesting.NewFakeClock(time.Time{}), Log: slog.New(slog.DiscardHandler),
		Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}
}

func installerOf(o Options) *Installer { return newInstaller(o, newSources(o, func() {})) }

// notedPods notes what is installed.
type notedPods struct {
	Pods
	anew  bool
	fails map[string]error
	calls []string
}

func (p *notedPods) Anew() bool { return p.anew }
func (p *notedPods) Install(_ context.Context, node string, r Revision) error {
	p.calls = append(p.calls, fmt.Sprintf("%s %d", node, r.Number))
	return p.fails[node]
}

const aFile = "resources: [{resources: [secrets], providers: [{identity: {}}]}]"

// Nodes whose API server only has to load something do not keep others waiting, those with which something is wrong do, and where pods are replaced all others
// wait. What cannot run is replaced first.
func TestRoll(t *testing.T) {
	broken := errors.New("a plugin cannot start")
	for _, test := range []struct {
		anew  bool
		fails map[string]error
		want  string
	}{
		{false, nil, "cp-1 3, cp-2 3, cp-3 3"},
		{false, map[string]error{"cp-1": fmt.Errorf("%w: x", ErrUnfinished)}, "cp-1 3, cp-2 3, cp-3 3"},
		{false, map[string]error{"cp-2": broken}, "cp-1 3, cp-2 3"},
		{true, nil, "cp-1 3"},
		{true, map[string]error{"cp-1": broken}, "cp-1 3"},
	} {
		pods := &notedPods{anew: test.anew, fails: test.fails}
		i := installerOf(forTest(pods))
		i.revisions = &revisions{last: Revision{3, operator.Configuration{File: []byte(aFile)}}}
		nodes := map[string]Node{"cp-1": {}, "cp-2": {}, "cp-3": {}, "cp-0": {Unavailable: true}}
		err := i.roll(t.Context(), nodes)
		if got := strings.Join(pods.calls, ", "); got != test.want || !errors.Is(err, ErrUnfinished) {
			t.Errorf("anew %t, %v: %s, %v, want %s", test.anew, test.fails, got, err, test.want)
		}
		pods.calls, pods.fails = nil, nil
		nodes["cp-3"] = Node{Waiting: map[uint64]string{1: "ImagePullBackOff"}}
		i.installed = map[string]int{"cp-1": 3}
		if _ = i.roll(t.Context(), nodes); pods.calls[0] != "cp-3 3" {
			t.Errorf("anew %t: %v, want the node whose plugin cannot run first", test.anew, pods.calls)
		}
	}
}

// A node that was rolled back stays until there is another revision. One that could not be made anew is as before.
func TestRollBack(t *testing.T) {
	pods := &notedPods{fails: map[string]error{"cp-1": ErrUnfinished}}
	i := installerOf(forTest(pods))
	for n := 2; n < 4; n++ {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: operator.RevisionName(n)}, Data: map[string][]byte{operator.ConfigKey: []byte(aFile)}}
		if err := i.sources.revisions.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	newest := &revisions{last: Revision{3, operator.Configuration{File: []byte(aFile), Plugins: []revision.Plugin{{KeyID: 2}}}}}
	i.revisions, i.installed["cp-1"] = newest, 3
	all, err := i.Revisions()
	if err != nil || len(all) != 2 || string(all[2].File) != aFile {
		t.Fatalf("%v, %v", all, err)
	}
	older := Revision{2, all[2]}
	if err := i.Replace("cp-1", older, true, func() error { return ErrUnfinished }); err == nil || i.installed["cp-1"] != 3 {
		t.Errorf("%v, it has revision %d", err, i.installed["cp-1"])
	}
	if err := i.Replace("cp-1", older, true, func() error { return nil }); err != nil || i.installed["cp-1"] != 2 {
		t.Errorf("%v, it has revision %d", err, i.installed["cp-1"])
	}
	nodes := map[string]Node{"cp-1": {Up: true}}
	if err := i.roll(t.Context(), nodes); err != nil || len(pods.calls) > 0 {
		t.Errorf("%v, %v", err, pods.calls)
	}
	newest.last.Number = 4
	if err := i.roll(t.Context(), nodes); !errors.Is(err, ErrUnfinished) || len(pods.calls) == 0 {
		t.Errorf("%v, %v", err, pods.calls)
	}
	// What has another configuration than the newest is replaced.
	for _, c := range []struct {
		c    operator.Configuration
		want int
	}{{newest.last.Configuration, 4}, {operator.Configuration{}, firstRevision}} {
		if i.Placed("cp-1", c.c); i.installed["cp-1"] != c.want {
			t.Errorf("it has revision %d, want %d", i.installed["cp-1"], c.want)
		}
	}
}

// The plugins of the keys in a file come first, in the order of the file.
func TestReadRevision(t *testing.T) {
	const plugin = `{"spec":{"encryption":{"kms":{"type":"Vault","vault":{"kmsPluginImage":"registry.example.com/kms/plugin@sha256:0000000000000000000000000000000000000000000000000000000000000000",
"vaultAddress":"https://vault.example.com:8200","vaultKeyPath":"transit/keys/one","authentication":{"type":"AppRole","appRole":{"secret":{"name":"vault-approle"}}}}}}}}`
	s := &corev1.Secret{Data: map[string][]byte{operator.ConfigKey: []byte(`resources: [{resources: [secrets], providers: [{kms: {name: kms-1, endpoint: "unix:///var/run/kmsplugin/kms-1.sock"}},
{kms: {name: kms-2, endpoint: "unix:///var/run/kmsplugin/kms-2.sock"}}, {identity: {}}]}]`)}}
	for n := 1; n < 4; n++ {
		s.Data[operator.PluginConfigPrefix+fmt.Sprint(n)] = []byte(plugin)
	}
	if c, read, err := readRevision(s); err != nil || !slices.Equal(c.KeyIDs(), []uint64{1, 2, 3}) || read.Writer() != "1" {
		t.Errorf("%v, %+v, %v", c.KeyIDs(), read, err)
	}
	s.Data[operator.ConfigKey] = []byte("[")
	if _, _, err := readRevision(s); err == nil {
		t.Error("a file that is no configuration is accepted")
	}
}

// Each node of a whole operator has the revision that its own installer pod has installed. Until that has what the operator wants, nothing has converged.
func TestFollow(t *testing.T) {
	pod := func(node string, revision int) *corev1.Pod {
		p := operatorPod(appInstaller, fmt.Sprintf("installer-%d-%s", revision, node), node, corev1.PodPending, fmt.Sprintf("--revision=%d", revision))
		p.Namespace = Namespace
		return &p
	}
	file := map[string][]byte{operator.ConfigKey: []byte(aFile)}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: operator.RevisionName(3)}, Data: file}
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	client := fake.NewClientset(pod("cp-1", 3), pod("cp-2", 2), secret, node("cp-1"), node("cp-2"), node("cp-3"))
	f := newRevisions(Options{Whole: true, APIServer: kubeAPIServer(), Client: client, Pods: &notedPods{}, Clock: clocktesting.NewFakeClock(time.Time{}), Log: slog.New(slog.DiscardHandler)})
	if err := f.look(t.Context(), map[string]Node{"cp-1": {}, "cp-2": {}, "cp-3": {Unavailable: true}}); err != nil {
		t.Fatal(err)
	}
	if err := f.want(t.Context(), secret, operator.Configuration{File: file[operator.ConfigKey]}); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]int{"cp-1": 3, "cp-2": 2, "cp-3": firstRevision} {
		if got := f.of(node); got.Number != want || f.wanted(node) != (node == "cp-1") {
			t.Errorf("%s is to have revision %d, want %d; what is wanted: %t", node, got.Number, want, f.wanted(node))
		}
	}
	for name, want := range map[string]corev1.ConditionStatus{"cp-1": corev1.ConditionTrue, "cp-3": corev1.ConditionUnknown} {
		if n, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil || len(n.Status.Conditions) != 1 || n.Status.Conditions[0].Status != want {
			t.Errorf("%s: %v, %v, want Ready %s", name, n.Status.Conditions, err, want)
		}
	}
	if newest := f.newest(); newest.Number != 3 || string(newest.File) != aFile {
		t.Errorf("the newest is %+v", newest)
	}
	if f.forget("cp-1"); f.of("cp-1").Number != firstRevision {
		t.Error("another node of that name would have its revision")
	}
}

// Where kubelets run, an installer pod is left alone, and so is the condition of its node.
func TestFollowKubelets(t *testing.T) {
	pod := operatorPod(appInstaller, "installer-2-cp-1", "cp-1", corev1.PodPending, "--revision=2")
	pod.Namespace = Namespace
	client := fake.NewClientset(&pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1"}})
	f := newRevisions(Options{Whole: true, APIServer: kubeAPIServer(), Client: client, Pods: &notedPods{anew: true}, Clock: clocktesting.NewFakeClock(time.Time{}), Log: slog.New(slog.DiscardHandler)})
	look := func() int {
		if err := f.look(t.Context(), map[string]Node{"cp-1": {}}); err != nil {
			t.Fatal(err)
		}
		return f.of("cp-1").Number
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
	i := installerOf(forTest(nil))
	for _, name := range []string{revision.KeyName(i.Component, 2), revision.ConfigName(i.Component, 3), i.DesiredName()} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: revision.Namespace, Name: name, Labels: map[string]string{revision.ComponentLabel: string(i.Component),
			revision.KindLabel: revision.KindConfig, revision.RevisionLabel: "3"}}, Data: map[string][]byte{operator.ConfigKey: []byte(name)}}
		if err := i.sources.secrets.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if keys, err := i.readKeys(); err != nil || len(keys) != 1 || keys[0].ID != 2 {
		t.Errorf("%v, %+v", err, keys)
	}
	var d history.Decision
	if i.ownRevisions(&d); d.Revision != 3 || i.OwnRevision([]byte(revision.ConfigName(i.Component, 3))) != 3 || i.OwnRevision(nil) != 0 {
		t.Errorf("%+v", d)
	}
}

// A pod in the API is made anew for each revision, and shows whether it is ready and what cannot run.
func TestMirrors(t *testing.T) {
	o := forTest(&notedPods{})
	m := &mirrors{Options: o, pods: map[string]mirror{}}
	m.Component = revision.OAuthAPIServer // it has no node statuses
	show := func(installed int, n Node) *corev1.Pod {
		t.Helper()
		if err := m.sync(t.Context(), map[string]Node{"cp-1": n}, map[string]int{"cp-1": installed}, Revision{Number: 2}); err != nil {
			t.Fatal(err)
		}
		all, err := o.Client.CoreV1().Pods(m.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(all.Items) != 1 || all.Items[0].Name != "oauth-apiserver-cp-1" {
			t.Fatalf("%+v, %v", all.Items, err)
		}
		return &all.Items[0]
	}
	is := func(p *corev1.Pod, revision string, phase corev1.PodPhase, ready corev1.ConditionStatus, waiting int) {
		t.Helper()
		if p.Labels["revision"] != revision || p.Status.Phase != phase || p.Status.Conditions[0].Status != ready || len(p.Status.InitContainerStatuses) != waiting {
			t.Errorf("%v, %+v", p.Labels, p.Status)
		}
	}
	is(show(1, Node{Up: true}), "1", corev1.PodRunning, corev1.ConditionTrue, 0)
	is(show(1, Node{}), "1", corev1.PodRunning, corev1.ConditionFalse, 0)
	m.replace("cp-1", Revision{Number: 2})
	is(show(1, Node{Up: true}), "2", corev1.PodPending, corev1.ConditionFalse, 0)
	p := show(1, Node{Up: true, Waiting: map[uint64]string{7: "ImagePullBackOff: no: such image"}})
	is(p, "2", corev1.PodPending, corev1.ConditionFalse, 1)
	if why := operator.WhyWaiting(p.Status.InitContainerStatuses[0]); why != "ImagePullBackOff: no: such image" {
		t.Error(why)
	}
	is(show(2, Node{Up: true}), "2", corev1.PodRunning, corev1.ConditionTrue, 0)
	m.forget("cp-1")
	is(show(2, Node{}), "2", corev1.PodPending, corev1.ConditionFalse, 0)
}

// A node that is replaced under its name loses its entry and gets a new one, first without a revision and then with that of its own pod. A subject that does not
// see the UID of the Node keeps the revision of the node before.
func TestNodeStatuses(t *testing.T) {
	uid := ""
	for name, subject := range map[string]struct {
		nodeUID func(string) string
		want    string
	}{
		"right": {func(string) string { return uid }, "a, a 4, none, new, b, b to 5, b 4 to 5, b 5, none, c, c 5"},
		"wrong": {func(string) string { return "" }, "new, new 4, new 4 to 5, new 5"},
	} {
		t.Run(name, func(t *testing.T) {
			o, before := forTest(&notedPods{}), map[string]any(nil)
			var got []string
			o.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				u := &unstructured.Unstructured{}
				if err := u.UnmarshalJSON(a.(clienttesting.PatchAction).GetPatch()); err != nil {
					return true, nil, err
				}
				all, _, _ := unstructured.NestedSlice(u.Object, "status", "nodeStatuses")
				if len(all) == 0 {
					got, before = append(got, "none"), nil
					return true, u, nil
				}
				entry := all[0].(map[string]any)
				nodeUID, _ := entry["nodeUID"].(string)
				words := []string{cmp.Or(nodeUID, "new")}
				is, revised := entry["currentRevision"].(int64)
				if revised {
					words = append(words, fmt.Sprint(is))
				}
				to, targeted := entry["targetRevision"]
				if targeted {
					words = append(words, fmt.Sprint("to ", to))
				}
				if was, had := before["currentRevision"].(int64); before == nil && (revised || targeted) || had && is < was {
					t.Errorf("the API refuses %v after %v", entry, before)
				}
				got, before = append(got, strings.Join(words, " ")), entry
				return true, u, nil
			})
			m := &mirrors{Options: o, nodeUID: subject.nodeUID}
			for _, now := range []struct {
				uid               string
				joins             bool
				installed, newest int
			}{
				{"a", false, 4, 4}, {"a", false, 4, 4}, {"a", false, 4, 4},
				{"", true, 4, 4}, {"", true, 4, 4}, {"b", true, 4, 4}, {"b", true, 4, 5}, {"b", false, 4, 5}, {"b", false, 5, 5},
				{"c", false, 5, 5}, {"c", false, 5, 5},
			} {
				uid = now.uid
				if err := m.statuses(t.Context(), map[string]Node{"cp-1": {Unavailable: now.joins}}, map[string]int{"cp-1": now.installed}, now.newest); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(got, ", "); got != subject.want {
				t.Errorf("applied %s, want %s", got, subject.want)
			}
		})
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
	both := &RollOut{Resources: []string{"configmaps", "secrets"}}
	pods := &claimedPods{}
	i := installerOf(forTest(pods))
	for n, c := range []struct {
		keys    []Key
		desired *RollOut
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
		{[]Key{key(2, "", secrets, maps)}, both, 4},  // and is doubted
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

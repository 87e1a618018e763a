package exchange

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

var now = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

func clerk() Clerk {
	return Clerk{Component: revision.KubeAPIServer, Encrypted: []string{"secrets"}, Random: bytes.NewReader(make([]byte, 1024))}
}

// requests of an action that can be carried out.
func requests(t *testing.T, s Seen, a core.Action) []Request {
	t.Helper()
	all, err := clerk().Requests(s, a, now)
	if err != nil {
		t.Fatalf("%T: %v", a, err)
	}
	return all
}

// A release that does not know KMS must not take a KMS key for none.
func TestKnown(t *testing.T) {
	s, older := NewSeen(), config.Options{BeforeKMS: true}
	s.Keys = []revision.Key{{ID: 1, Type: config.AESCBC}}
	if err := s.Known(older); err != nil {
		t.Error(err)
	}
	s.Keys = append(s.Keys, revision.Key{ID: 2, Type: config.KMS})
	if err := s.Known(older); !errors.Is(err, ErrUnreadable) {
		t.Errorf("%v, expected that it stops", err)
	}
	if err := s.Known(config.Options{}); err != nil {
		t.Error(err)
	}
}

// What an action makes is read back as what it was made of, and can be acted upon.
func TestWhatIsMadeIsSeen(t *testing.T) {
	s, k := NewSeen(), revision.Key{ID: 1, Type: config.AESCBC, Reason: "a test"}
	see := func(a core.Action) {
		t.Helper()
		for _, r := range requests(t, s, a) {
			add := func() error { return s.Add(ReadConfigMap(r.ConfigMap)) }
			if r.Secret != nil {
				add = func() error { return s.Add(ReadSecret(r.Secret)) }
			}
			if err := add(); err != nil || r.Verb != Create {
				t.Fatalf("%s %T: %v", r.Verb, a, err)
			}
		}
	}
	see(core.CreateKey{Key: k})
	see(core.CreateConfig{Config: revision.Config{Revision: 7, Keys: []uint64{1}}})
	see(core.CreatePluginConfig{Config: revision.PluginConfig{Revision: 3}})
	if len(s.Keys) != 1 || s.Keys[0] != k || len(s.Configs) != 1 || s.Configs[0].Revision != 7 || len(s.PluginConfigs) != 1 {
		t.Fatalf("%+v", s.Observed)
	}
	file, err := s.File(7)
	if err != nil || !bytes.Contains(file, []byte("aescbc")) || s.RevisionOf(file) != 7 || s.RevisionOf(nil) != 0 {
		t.Errorf("%v: %s", err, file)
	}
	k.Migrated = true
	if all := requests(t, s, core.UpdateKey{Key: k}); len(all) != 1 || all[0].Verb != Update {
		t.Errorf("%+v", all)
	} else if _, read, _, err := revision.ReadKey(all[0].Secret); err != nil || read != k {
		t.Errorf("%+v, %v", read, err)
	}
	if all := requests(t, s, core.Prune{Keys: []uint64{1}, Configs: []int{7}, PluginConfigs: []int{3}}); len(all) != 4 || all[3].ConfigMap == nil || all[3].Verb != Delete {
		t.Errorf("%+v", all)
	}
}

// A key names what was migrated to it, and is protected until it is pruned.
func TestUpstreamKey(t *testing.T) {
	c := clerk()
	c.Component, c.Encrypted = revision.KubeAPIServer, []string{"configmaps", "secrets"}
	k := revision.Key{ID: 4, Type: config.Identity}
	ask := func(s Seen, a core.Action) []Request {
		t.Helper()
		all, err := c.Requests(s, a, now)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	seen := func(one *corev1.Secret) Seen {
		t.Helper()
		s := NewSeen()
		if err := s.Add(ReadSecret(one)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	secret := ask(NewSeen(), core.CreateKey{Key: k})[0].Secret
	if secret.Name != "encryption-key-openshift-kube-apiserver-4" || !slices.Equal(secret.Finalizers, []string{revision.Finalizer}) || secret.Annotations[revision.ResourcesAnnotation] != "" {
		t.Errorf("%+v", secret.ObjectMeta)
	}
	k.Migrated = true
	secret = ask(seen(secret), core.UpdateKey{Key: k})[0].Secret
	if got := secret.Annotations[revision.ResourcesAnnotation]; got != `{"resources":[{"Group":"","Resource":"configmaps"},{"Group":"","Resource":"secrets"}]}` {
		t.Error(got)
	}
	all := ask(seen(secret), core.Prune{Keys: []uint64{4}})
	if len(all) != 2 || all[0].Verb != Update || len(all[0].Secret.Finalizers) > 0 || all[1].Verb != Delete {
		t.Fatalf("%+v", all)
	}
	// One that ended between the two is seen to the end.
	if all = ask(seen(all[0].Secret), core.Prune{Keys: []uint64{4}}); len(all) != 1 || all[0].Verb != Delete {
		t.Errorf("%+v", all)
	}
}

// What rests upon something that was not seen is behind, and what was edited by hand stops the operator.
func TestWhatIsNotSeen(t *testing.T) {
	s := NewSeen()
	if _, err := s.File(1); !Behind(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := clerk().Requests(s, core.UpdateKey{Key: revision.Key{ID: 1, Type: config.Identity}}, now); !Behind(err) {
		t.Errorf("a key that is not there: %v", err)
	}
	if _, err := clerk().Requests(s, core.Desire{}, now); err == nil {
		t.Error("an action that writes nothing has no requests")
	}
	edited := requests(t, s, core.CreateKey{Key: revision.Key{ID: 1, Type: config.AESGCM}})[0].Secret
	edited.Data = nil
	err := s.Add(ReadSecret(edited))
	if words, ok := Unreadable(err); !ok || len(words.Conditions) != 1 || len(s.Keys) != 0 {
		t.Errorf("%v: %+v", err, words)
	}
	if _, ok := Unreadable(errors.New("no API server")); ok {
		t.Error("an error of another kind is told as one of an object")
	}
}

func TestBehind(t *testing.T) {
	r := schema.GroupResource{Resource: "secrets"}
	for _, err := range []error{ErrBehind, apierrors.NewAlreadyExists(r, "x"), apierrors.NewConflict(r, "x", nil), apierrors.NewNotFound(r, "x")} {
		if !Behind(err) {
			t.Errorf("%v is a failure", err)
		}
	}
	if Behind(errors.New("connection refused")) {
		t.Error("a connection that is refused is none")
	}
	if a, b := Again(core.Plan{Again: time.Hour}), Again(core.Plan{Actions: []core.Action{core.Prune{}}}); a > time.Second || b >= a {
		t.Errorf("look again after %v, and after an action after %v", a, b)
	}
}

// Of two reports of a plugin the newer counts; of nodes that nobody expects, and of a plugin without a keyID, none does.
func TestReportsBesideNodes(t *testing.T) {
	report := func(node, keyID string, status contract.Status, at time.Time) Report {
		return Report{node, contract.Entry{KeyID: keyID, Status: status, KEKID: "kek", LastChecked: at}}
	}
	f, s := Failing{}, NewSeen()
	s.Nodes = map[string]core.Node{"cp-1": {}}
	f.Add(&s, []Report{report("cp-1", "1", contract.StatusError, now), report("cp-1", "1", contract.StatusHealthy, now.Add(-time.Second)),
		report("cp-9", "1", contract.StatusHealthy, now), report("cp-1", "abcdefgh", contract.StatusHealthy, now)})
	if e := s.Nodes["cp-1"].Report[1]; len(s.Nodes) != 1 || len(s.Nodes["cp-1"].Report) != 1 || e.Healthy || !e.Failing.Equal(now) {
		t.Errorf("%+v", s.Nodes)
	}
	f.Add(&s, []Report{report("cp-1", "1", contract.StatusError, now.Add(time.Minute))})
	if e := s.Nodes["cp-1"].Report[1]; !e.Failing.Equal(now) {
		t.Errorf("it fails since %v", e.Failing)
	}
	f.Add(&s, []Report{report("cp-1", "1", contract.StatusHealthy, now.Add(2*time.Minute))})
	if e := s.Nodes["cp-1"].Report[1]; !e.Healthy || len(f) != 0 {
		t.Errorf("%+v, failing %v", e, f)
	}
}

// Nothing is said twice, and a status keeps the time since when it is so.
func TestSpeech(t *testing.T) {
	said := PublishedStatus{}
	say := func(message string, status bool, at time.Time) map[string]any {
		t.Helper()
		cr, then, err := said.Next("KubeAPIServer", WantedStatus{Conditions: []core.Condition{{Type: "X", Status: status, Reason: "R", Message: message}}}, at)
		if err != nil {
			t.Fatal(err)
		}
		said = then
		if cr == nil {
			return nil
		}
		return cr["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	}
	if c := say("a", true, now); c == nil || c["status"] != "True" {
		t.Errorf("%v", c)
	}
	if c := say("a", true, now.Add(time.Minute)); c != nil {
		t.Errorf("said again: %v", c)
	}
	if c := say("b", true, now.Add(time.Minute)); c == nil || c["lastTransitionTime"] != now.Format(time.RFC3339) {
		t.Errorf("%v", c)
	}
	if c := say("b", false, now.Add(time.Minute)); c == nil || c["lastTransitionTime"] == now.Format(time.RFC3339) {
		t.Errorf("%v", c)
	}
}

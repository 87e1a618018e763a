package operator

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

var now = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

// look reads everything that the operator has made.
func (w *world) look() Seen {
	w.Helper()
	s := NewSeen()
	secrets, err := w.secrets().List(w.Context(), metav1.ListOptions{})
	w.must(err)
	for i := range secrets.Items {
		w.must(s.Add(ReadSecret(&secrets.Items[i])))
	}
	maps, err := w.configMaps().List(w.Context(), metav1.ListOptions{})
	w.must(err)
	for i := range maps.Items {
		w.must(s.Add(ReadConfigMap(&maps.Items[i])))
	}
	return s
}

// do carries out actions, each on what is there by then, and returns what is there at last.
func (w *world) do(actions ...core.Action) Seen {
	w.Helper()
	for _, a := range actions {
		w.must(w.carry(w.Context(), w.look(), a))
	}
	return w.look()
}

// A release that does not know KMS must not take a KMS key for none.
func TestKnown(t *testing.T) {
	s, older := NewSeen(), config.Options{BeforeKMS: true}
	s.Keys = []revision.Key{{ID: 1, Type: config.AESCBC}}
	if err := s.known(older); err != nil {
		t.Error(err)
	}
	s.Keys = append(s.Keys, revision.Key{ID: 2, Type: config.KMS})
	if err := s.known(older); !errors.Is(err, ErrUnreadable) {
		t.Errorf("%v, expected that it stops", err)
	}
	if err := s.known(config.Options{}); err != nil {
		t.Error(err)
	}
}

// What an action makes is read back as what it was made of, and can be acted upon.
func TestWhatIsMadeIsSeen(t *testing.T) {
	w, k := newWorld(t, "kubeapiserver"), revision.Key{ID: 1, Type: config.AESCBC, Reason: "a test"}
	s := w.do(core.CreateKey{Key: k}, core.CreateConfig{Config: revision.Config{Revision: 7, Keys: []uint64{1}}}, core.CreatePluginConfig{Config: revision.PluginConfig{Revision: 3}})
	if len(s.Keys) != 1 || s.Keys[0] != k || len(s.Configs) != 1 || s.Configs[0].Revision != 7 || len(s.PluginConfigs) != 1 {
		t.Fatalf("%+v", s.Observed)
	}
	file, err := s.File(7)
	if err != nil || !bytes.Contains(file, []byte("aescbc")) || s.revisionOf(file) != 7 || s.revisionOf(nil) != 0 {
		t.Errorf("%v: %s", err, file)
	}
	if err := w.carry(t.Context(), s, core.CreateKey{Key: k}); !behind(err) {
		t.Errorf("a key that is there: %v", err)
	}
	k.Migrated = true
	if s = w.do(core.UpdateKey{Key: k}); s.Keys[0] != k {
		t.Errorf("%+v", s.Keys)
	}
	if s = w.do(core.Prune{Keys: []uint64{1}, Configs: []int{7}, PluginConfigs: []int{3}}); len(s.Keys)+len(s.Configs)+len(s.PluginConfigs) > 0 {
		t.Errorf("%+v", s.Observed)
	}
	w.do(core.Prune{Keys: []uint64{1}, Configs: []int{7}, PluginConfigs: []int{3}})
}

// A key names what was migrated to it, and is protected until it is pruned.
func TestUpstreamKey(t *testing.T) {
	w, k := newWorld(t, "kubeapiserver"), revision.Key{ID: 4, Type: config.Identity}
	key := func() *corev1.Secret {
		t.Helper()
		s, err := w.secrets().Get(t.Context(), "encryption-key-openshift-kube-apiserver-4", metav1.GetOptions{})
		w.must(err)
		return s
	}
	w.do(core.CreateKey{Key: k})
	if s := key(); !slices.Equal(s.Finalizers, []string{revision.Finalizer}) || s.Annotations[revision.ResourcesAnnotation] != "" {
		t.Errorf("%+v", s.ObjectMeta)
	}
	k.Migrated = true
	w.do(core.UpdateKey{Key: k})
	if got := key().Annotations[revision.ResourcesAnnotation]; got != `{"resources":[{"Group":"","Resource":"configmaps"},{"Group":"","Resource":"secrets"}]}` {
		t.Error(got)
	}
	w.client.ClearActions()
	seen := w.look()
	w.do(core.Prune{Keys: []uint64{4}})
	var verbs []string
	for _, a := range w.client.Actions() {
		if a.GetVerb() != "list" {
			verbs = append(verbs, a.GetVerb())
		}
	}
	if !slices.Equal(verbs, []string{"update", "delete"}) {
		t.Error(verbs)
	}
	if err := w.carry(t.Context(), seen, core.UpdateKey{Key: k}); !behind(err) {
		t.Errorf("a key that is gone: %v", err)
	}
}

// What rests upon something that was not seen is behind, and what was edited by hand stops the operator.
func TestWhatIsNotSeen(t *testing.T) {
	w := newWorld(t, "kubeapiserver")
	s := NewSeen()
	if _, err := s.File(1); !behind(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := w.carry(t.Context(), s, core.UpdateKey{Key: revision.Key{ID: 1, Type: config.Identity}}); !behind(err) {
		t.Errorf("a key that is not there: %v", err)
	}
	edited := w.do(core.CreateKey{Key: revision.Key{ID: 1, Type: config.AESGCM}}).secrets[1]
	edited.Data = nil
	if err := s.Add(ReadSecret(edited)); !errors.Is(err, ErrUnreadable) || len(s.Keys) != 0 {
		t.Errorf("%v", err)
	}
}

func TestBehind(t *testing.T) {
	r := schema.GroupResource{Resource: "secrets"}
	for _, err := range []error{ErrBehind, apierrors.NewAlreadyExists(r, "x"), apierrors.NewConflict(r, "x", nil), apierrors.NewNotFound(r, "x")} {
		if !behind(err) {
			t.Errorf("%v is a failure", err)
		}
	}
	if behind(errors.New("connection refused")) {
		t.Error("a connection that is refused is none")
	}
	if a, b := again(core.Plan{Again: time.Hour}), again(core.Plan{Actions: []core.Action{core.Prune{}}}); a > time.Second || b >= a {
		t.Errorf("look again after %v, and after an action after %v", a, b)
	}
}

// Of two reports of a plugin the newer counts; of nodes that nobody expects, and of a plugin without a keyID, none does.
func TestReportsBesideNodes(t *testing.T) {
	entry := func(node, keyID string, status contract.Status, at time.Time) report {
		return report{node, contract.Entry{KeyID: keyID, Status: status, KEKID: "kek", LastChecked: at}}
	}
	f, s := failing{}, NewSeen()
	s.Nodes = map[string]core.Node{"cp-1": {}}
	f.add(&s, []report{entry("cp-1", "1", contract.StatusError, now), entry("cp-1", "1", contract.StatusHealthy, now.Add(-time.Second)),
		entry("cp-9", "1", contract.StatusHealthy, now), entry("cp-1", "abcdefgh", contract.StatusHealthy, now)})
	if e := s.Nodes["cp-1"].Report[1]; len(s.Nodes) != 1 || len(s.Nodes["cp-1"].Report) != 1 || e.Healthy || !e.Failing.Equal(now) {
		t.Errorf("%+v", s.Nodes)
	}
	f.add(&s, []report{entry("cp-1", "1", contract.StatusError, now.Add(time.Minute))})
	if e := s.Nodes["cp-1"].Report[1]; !e.Failing.Equal(now) {
		t.Errorf("it fails since %v", e.Failing)
	}
	f.add(&s, []report{entry("cp-1", "1", contract.StatusHealthy, now.Add(2*time.Minute))})
	if e := s.Nodes["cp-1"].Report[1]; !e.Healthy || len(f) != 0 {
		t.Errorf("%+v, failing %v", e, f)
	}
}

// A status keeps the time since when it is so, and what does not change is not written again.
func TestPublished(t *testing.T) {
	said := published{}
	for _, step := range []struct {
		message      string
		status, news bool
		at, since    time.Duration
	}{{"a", true, true, 0, 0}, {"a", true, false, time.Minute, 0}, {"b", true, true, time.Minute, 0}, {"b", false, true, time.Minute, time.Minute}} {
		next := said.next([]core.Condition{{Type: "X", Status: step.status, Reason: "R", Message: step.message}}, nil, now.Add(step.at))
		c := next.conditions[0]
		if news := !reflect.DeepEqual(next, said); news != step.news || !c.LastTransitionTime.Equal(&metav1.Time{Time: now.Add(step.since)}) || (c.Status == "True") != step.status {
			t.Errorf("%+v: news %v, %+v", step, news, c)
		}
		said = next
	}
}

// A result stands with the hash that it was made for, beside the one that is asked for.
func TestHandshake(t *testing.T) {
	p, err := config.NewPlugin("GCP", "", map[string]string{"keyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"})
	if err != nil {
		t.Fatal(err)
	}
	w := core.Wanted{Wanted: config.Wanted{Type: config.KMS, KMS: p}}
	result := func(status, hash, kek string) map[string]any {
		return map[string]any{"observedConfigHash": w.Hash(), "result": map[string]any{"status": status, "configHash": hash, "remoteKeyID": kek}}
	}
	at := time.Unix(1, 0)
	for name, c := range map[string]struct {
		wanted core.Wanted
		result core.Preflight
		want   map[string]any
	}{
		"no plugin":      {core.Wanted{Wanted: config.Wanted{Type: config.AESCBC}}, core.Preflight{}, nil},
		"invalid":        {core.Wanted{Invalid: "x"}, core.Preflight{}, nil},
		"asked":          {w, core.Preflight{}, map[string]any{"observedConfigHash": w.Hash()}},
		"under way":      {w, core.Preflight{Hash: w.Hash()}, map[string]any{"observedConfigHash": w.Hash()}},
		"passed":         {w, core.Preflight{Hash: w.Hash(), OK: true, KEK: "kek", At: at}, result("Succeeded", w.Hash(), "kek")},
		"failed":         {w, core.Preflight{Hash: w.Hash(), At: at}, result("Failed", w.Hash(), "unknown")},
		"failed, seen":   {w, core.Preflight{Hash: w.Hash(), KEK: "kek", At: at}, result("Failed", w.Hash(), "kek")},
		"of another one": {w, core.Preflight{Hash: "abcdefgh", OK: true, KEK: "kek", At: at}, result("Succeeded", "abcdefgh", "kek")},
	} {
		if got := handshake(c.wanted, c.result); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, expected %v", name, got, c.want)
		}
	}
}

package live

import (
	"bytes"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/history"
)

// What goes into an object comes out of it, for every kind that an API server encrypts.
func TestEncryptedObjects(t *testing.T) {
	flunders := Encrypted{Resource: schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1beta1", Resource: "flunders"}, Kind: "Flunder",
		Registry: "/oauth-apiserver/wardle.example.com/flunders/", Field: []string{"spec", "flunderReference"}, Spec: object{"referenceType": "Flunder"}}
	for _, o := range []Encrypted{EncryptedSecrets(), flunders} {
		value := []byte{0, 1, 2, 255}
		u := o.object("data-1", value)
		got, err := o.value(u)
		if err != nil || !bytes.Equal(got, value) || u.GetName() != "data-1" || u.GetLabels()[dataLabel] != "true" || u.GetKind() != o.Kind {
			t.Errorf("%s: %x, %v of %v", o.name(), got, err, u)
		}
		o.object("data-2", []byte("x"))
		if len(o.Spec) > 1 {
			t.Errorf("what all have in common was changed: %v", o.Spec)
		}
	}
	if EncryptedSecrets().objectName("a") != "secrets/default/a" || flunders.objectName("a") != "flunders.wardle.example.com/default/a" {
		t.Error("objects have other names than their resources")
	}
}

// Whoever records for a further API server says so once, also where the process says so itself.
func TestScoped(t *testing.T) {
	log := history.NewLog(nil)
	g := newGate(log, false)
	log.Record(time.Now(), "engine", &history.Run{})
	s := scoped{g, history.OAuthAPIServer}
	p := history.Process{Role: history.RoleAPIServer, APIServer: history.OAuthAPIServer, Node: "cp-1", State: history.ProcessReady}
	s.Record(time.Now(), "backend", &p)
	g.Record(time.Now(), "backend", owned(&p))
	g.Record(time.Now(), "backend", owned(&history.Process{Role: history.RoleEtcd}))
	events := log.Events()[1:]
	if len(events) != 3 || events[0].APIServer != p.APIServer || events[1].APIServer != p.APIServer || events[2].APIServer != "" || events[1].Process == nil {
		t.Errorf("%+v", events)
	}
	if NameOf(p) == NameOf(history.Process{Role: history.RoleAPIServer, Node: "cp-1"}) {
		t.Error("two processes have one name")
	}
}

// A node that loses its power takes the pods of further API servers along; the static pod does not.
func TestNodeHasThePartsOfFurtherAPIServers(t *testing.T) {
	n := &Node{Name: "cp-1", Alongside: []*Node{{Name: "cp-1", APIServer: history.OAuthAPIServer}}}
	for role, want := range map[string]int{history.RoleNode: 2, history.RolePod: 1} {
		if got := (&nodeUnit{role: role}).parts(n); len(got) != want || got[0].Identity.APIServer != "" || want > 1 && got[1].Identity.APIServer != history.OAuthAPIServer {
			t.Errorf("%s: %+v", role, got)
		}
	}
}

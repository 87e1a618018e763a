package live

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	lifecycle "github.com/kmsharness/kmsharness/operator"
)

// Nobody can say what is written while an API server was told something that it has not named yet.
func TestPodsWriter(t *testing.T) {
	p := newPods(&apiServer{run: &run{}})
	defer p.cancel()
	configured := func(node, hash string, pid int, providers ...string) {
		pod := p.of(node)
		pod.files[hash], pod.configured, pod.pid = rolledOut{revision: 1, providers: providers}, hash, pid
		if pid != 0 {
			pod.inForce = pod.files[hash]
		}
	}
	is := func(want string) {
		t.Helper()
		if got := p.writer(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is("identity")
	p.of("cp-1")
	p.of("cp-2")
	is("identity")
	configured("cp-1", "a", 7, "kms-1", "identity")
	is("")
	configured("cp-2", "a", 0, "kms-1", "identity")
	is("")
	configured("cp-2", "a", 8, "kms-1", "identity")
	is("kms-1")
	p.of("cp-1").telling = true
	is("")
}

// Only a key that was named is not named by its keyID, until the names are forgotten.
func TestNamesOfRemoteKeys(t *testing.T) {
	k := &cluster.RemoteKMS{}
	k.Call("", "2", "key-abc")
	k.Call("oauth-apiserver", "2", "key-abc")
	if k.Key("", "1") != "key-1" || k.Key("", "2") != "key-abc" {
		t.Errorf("%s, %s", k.Key("", "1"), k.Key("", "2"))
	}
	if got := k.Key("oauth-apiserver", "2"); got != "oauth-apiserver.key-abc" {
		t.Errorf("%s of another API server", got)
	}
	if k.Forget(); k.Key("", "2") != "key-2" {
		t.Errorf("%s after it was forgotten", k.Key("", "2"))
	}
}

// A revision reaches a node that lags later than the others, each one again, and the rest at once. A file that the node has is not late.
func TestPodsLag(t *testing.T) {
	p := newPods(&apiServer{run: &run{}})
	defer p.cancel()
	p.delay(map[string]time.Duration{"cp-3": time.Hour})
	late := func(node string, revision int) bool {
		return p.late(node, operand.Revision{Number: revision, Configuration: lifecycle.Configuration{File: []byte("file")}})
	}
	if late("cp-1", 7) || !late("cp-3", 7) || !late("cp-3", 7) {
		t.Error("cp-3 alone lags")
	}
	p.of("cp-3").coming.since = time.Now().Add(-2 * time.Hour)
	if late("cp-3", 7) || !late("cp-3", 8) {
		t.Error("each revision lags by itself")
	}
	p.of("cp-3").file = []byte("file")
	if late("cp-3", 9) {
		t.Error("it has the file")
	}
	p.of("cp-3").file = nil
	if p.delay(nil); late("cp-3", 8) {
		t.Error("nothing lags any more")
	}
}

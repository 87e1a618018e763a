package journal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	plugin "github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/journal"
)

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeCall(t *testing.T) {
	began := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	for sent, want := range map[plugin.Outcome]string{
		plugin.Answered: history.CallOK, plugin.Failed: history.CallError, plugin.Nil: history.CallOK,
		plugin.Abandoned: history.CallAbandoned, plugin.Reset: history.CallError, plugin.Crashed: history.CallError,
	} {
		c, err := journal.DecodeCall(encode(t, plugin.Call{Node: "cp-1", KeyID: "1", Method: "Status", Began: began,
			Ended: began.Add(time.Second), Outcome: sent, Code: "OK", Healthz: "ok", HealthzBytes: 2, KEKID: "k", KEKIDBytes: 2000}))
		if err != nil {
			t.Fatal(err)
		}
		if c.Outcome != want || c.Took != time.Second || c.HealthzBytes != 0 || c.KEKIDBytes != 2000 {
			t.Errorf("%s: %+v", sent, c)
		}
	}
}

func TestDecodeOperation(t *testing.T) {
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	o, e, err := journal.DecodeOperation(encode(t, remotekms.Operation{Time: now, Op: "encrypt", Plugin: "cp-1/2", UID: "u", KEKID: "k", Code: "denied", Detail: "no"}))
	if err != nil || !o.Time.Equal(now) || *e != (history.Envelope{Hop: "remote-kms", Op: "encrypt", UID: "u", Node: "cp-1", KeyID: "2", KEKID: "k", Error: "denied: no"}) {
		t.Fatalf("%v %+v %v", o.Time, e, err)
	}
	if _, e, err := journal.DecodeOperation(encode(t, remotekms.Operation{Time: now, Op: "rotate", Code: "ok"})); e != nil || err != nil {
		t.Fatalf("rotate: %+v %v", e, err)
	}
}

func TestGarbageIsNamed(t *testing.T) {
	log := history.NewLog(nil)
	r := journal.Recorder{Sink: log}
	for _, line := range []string{"", "{", "{}", "[]"} {
		if err := r.Call([]byte(line)); err == nil || !strings.Contains(err.Error(), "plugin journal") {
			t.Errorf("%q: %v", line, err)
		}
		if err := r.Operation([]byte(line)); err == nil || !strings.Contains(err.Error(), "remote KMS") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if len(log.Events()) != 0 {
		t.Error("garbage was recorded")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"node":"cp-1","keyID":"1","method":"Status","ended":"2026-05-08T12:00:00Z"}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = journal.DecodeCall(b)
		_, _, _ = journal.DecodeOperation(b)
	})
}

// An operation of a plugin of a further API server is told by its key: node and keyID are the same for all.
func TestOperationOfAFurtherAPIServer(t *testing.T) {
	log := history.NewLog(nil)
	r := journal.Recorder{Sink: log, Of: func(key string) string {
		name, _, _ := strings.Cut(key, ".")
		return strings.TrimPrefix(name, "key-1")
	}}
	for _, key := range []string{"oauth-apiserver.key-1", "key-1"} {
		line := encode(t, remotekms.Operation{Time: time.Unix(1, 0), Op: "encrypt", Key: key, Plugin: "cp-1/1", UID: "u", Code: "ok"})
		if err := r.Operation(line); err != nil {
			t.Fatal(err)
		}
	}
	if e := log.Events(); len(e) != 2 || e[0].APIServer != "oauth-apiserver" || e[0].Envelope.KeyID != "1" || e[1].APIServer != "" {
		t.Errorf("%+v", e)
	}
}

package trace_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/trace"
)

const second = time.Second

// whole is two nodes, one object of each key, and a read that needs the other's.
func whole() *story {
	s := tell().operation(5*second, trace.Encrypt, "u-enc", "cp-1", "", "sha256:dek")
	s.request(6*second, "create", "cp-1", "a", "r-write").at(6*second+time.Millisecond, line("use", "u-enc", "cp-1", "secrets/ns/a"))
	s.at(7*second, &history.Data{Op: history.DataRaw, Object: "secrets/ns/a", OK: true, Provider: "kms-1", KEKID: "kek-1", DEKSource: "sha256:dek"})
	s.request(8*second, "get", "cp-2", "a", "r-read").operation(8*second+time.Millisecond, trace.Decrypt, "u-dec", "cp-2", "secrets/ns/a", "sha256:dek")
	return s.request(9*second, "get", "cp-2", "a", "r-cached")
}

func TestOperationsAreFollowed(t *testing.T) {
	tr := whole().join(t)
	if len(tr.Operations) != 2 || len(tr.Uncorrelated()) != 0 {
		t.Fatalf("%+v", tr.Operations)
	}
	enc, dec := tr.Operations[0], tr.Operations[1]
	parties := func(o trace.Operation) (out []string) {
		for _, h := range o.Hops {
			out = append(out, h.Party)
		}
		return out
	}
	if want := []string{trace.APIServer, trace.Plugin, trace.RemoteKMS}; !slices.Equal(parties(enc), want) || !slices.Equal(parties(dec), want) {
		t.Errorf("hops %v, %v", parties(enc), parties(dec))
	}
	if enc.Took != 1100*time.Microsecond || enc.Node != "cp-1" || enc.KeyID != "1" || enc.KEKID != "kek-1" || !enc.OK {
		t.Errorf("%+v", enc)
	}
	if k := enc.Hops[2]; k.Took != 400*time.Microsecond || !k.Began.Equal(enc.Began.Add(300*time.Microsecond)) {
		t.Errorf("KMS %+v", k)
	}
	if len(enc.Sealed) != 1 || enc.Sealed[0].Object != "secrets/ns/a" {
		t.Errorf("sealed %+v", enc.Sealed)
	}
	if dec.Object != "secrets/ns/a" || dec.Request != "r-read" {
		t.Errorf("%+v", dec)
	}
}

// An object's key is known by the log and by the digest in etcd; a request that used what was in memory is no operation.
func TestObjectsAndRequestsAreFollowed(t *testing.T) {
	tr := whole().join(t)
	s, err := tr.Object("/registry/secrets/ns/a")
	if err != nil {
		t.Fatal(err)
	}
	if x := s.Object.Stored[0]; x.Encrypt != "u-enc" || !strings.Contains(x.By, "and digest") || x.Why != "" {
		t.Errorf("%+v", x)
	}
	if len(s.Operations) != 2 || len(s.Requests) != 3 || s.Requests[0].DEK != "u-enc" || !slices.Equal(s.Requests[1].Operations, []string{"u-dec"}) {
		t.Errorf("%+v", s)
	}
	cached := tr.Cached()
	if len(cached) != 2 || cached[0].AuditID != "r-write" || cached[1].AuditID != "r-cached" {
		t.Errorf("cached %+v", cached)
	}
}

func TestKeysThatAreNotKnown(t *testing.T) {
	raw := func(source string) *history.Data {
		return &history.Data{Op: history.DataRaw, Object: "secrets/ns/a", OK: true, Provider: "kms-1", KEKID: "kek-1", DEKSource: source}
	}
	for name, test := range map[string]struct {
		s                 *story
		encrypt, by, text string
	}{
		"by the digest alone":    {tell().operation(5*second, trace.Encrypt, "u", "cp-1", "", "x").at(6*second, raw("x")), "u", "digest in etcd", ""},
		"older than the history": {tell().at(5*second, line("use", "old", "cp-1", "secrets/ns/a")).at(6*second, raw("x")), "old", "API server's log", "before this history began"},
		"a contradiction":        {tell().operation(5*second, trace.Encrypt, "u", "cp-1", "", "x").at(6*second, line("use", "other", "cp-1", "secrets/ns/a")).at(7*second, raw("x")), "u", "digest in etcd", "the API server's log names other"},
		"nobody tells":           {tell().at(6*second, raw("x")), "", "", "no write of it"},
		"in clear text":          {tell().at(6*second, &history.Data{Op: history.DataRaw, Object: "secrets/ns/a", OK: true, Provider: "identity"}), "", "", "no envelope encryption"},
	} {
		story, err := test.s.join(t).Object("secrets/ns/a")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if x := story.Object.Stored[0]; x.Encrypt != test.encrypt || x.By != test.by || !strings.Contains(x.Why, test.text) || (x.Why == "") != (test.text == "") {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// Nothing is dropped: what a party does not have is listed, with the reason.
func TestGaps(t *testing.T) {
	base := func() *story { return tell().operation(5*second, trace.Encrypt, "u0", "cp-1", "", "x") }
	for name, test := range map[string]struct {
		s      *story
		party  string
		reason trace.Reason
	}{
		"older API server":         {base().at(20*second, base().call(20*second, "Encrypt", "", "cp-1", "y")), trace.Plugin, trace.NoUID},
		"KMS without the uid":      {base().at(20*second, kms("encrypt", "", "cp-1")), trace.RemoteKMS, trace.NoUID},
		"uid used again":           {base().operation(20*second, trace.Encrypt, "u0", "cp-1", "", "y"), trace.APIServer, trace.UIDReused},
		"log level":                {base().at(20*second, base().call(20*second, "Encrypt", "u1", "cp-2", "y")).at(20*second, kms("encrypt", "u1", "cp-2")), trace.APIServer, trace.NoLog},
		"no line":                  {base().at(20*second, base().call(20*second, "Encrypt", "u1", "cp-1", "y")).at(20*second, kms("encrypt", "u1", "cp-1")), trace.APIServer, trace.Missing},
		"API server killed":        {base().at(20*second, base().call(20*second, "Encrypt", "u1", "cp-1", "y")).at(20*second, kms("encrypt", "u1", "cp-1")).at(21*second, &history.Process{Role: history.RoleAPIServer, Node: "cp-1", State: history.ProcessKilled}), trace.APIServer, trace.Cut},
		"plugin down":              {base().at(10*second, &history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: "1", State: history.ProcessKilled}).at(20*second, line("decrypt", "u1", "cp-1", "secrets/ns/a")), trace.Plugin, trace.Down},
		"plugin behind a fault":    {base().at(10*second, &history.Action{ID: "steps[1]", Verb: "inject", Target: "plugin cp-1/*", Params: map[string]any{"fault": "refuse-connections"}, State: history.ActionDone}).at(20*second, line("decrypt", "u1", "cp-1", "secrets/ns/a")), trace.Plugin, trace.Fault},
		"fault was released":       {base().at(10*second, &history.Action{Verb: "inject", Target: "plugin cp-1/*", State: history.ActionDone}).at(12*second, &history.Action{Verb: "release", Target: "plugin cp-1/*", State: history.ActionDone}).at(20*second, line("decrypt", "u1", "cp-1", "secrets/ns/a")), trace.Plugin, trace.Missing},
		"end of the recording":     {base().at(59*second, line("decrypt", "u1", "cp-1", "secrets/ns/a")), trace.Plugin, trace.Cut},
		"KMS given another uid":    {base().at(20*second, line("encrypt", "u1", "cp-1", "")).at(20*second, base().call(20*second, "Encrypt", "u1", "cp-1", "y")), trace.RemoteKMS, trace.Missing},
		"plugin fails by itself":   {base().at(20*second, line("encrypt", "u1", "cp-1", "")).at(20*second, &history.Call{Node: "cp-1", KeyID: "1", Method: "Encrypt", UID: "u1", Began: base().start.Add(20 * second), Outcome: history.CallError, Code: "Internal"}), trace.RemoteKMS, trace.Refused},
		"nobody journals the KMS":  {tell().at(20*second, line("encrypt", "u1", "cp-1", "")).at(20*second, tell().call(20*second, "Encrypt", "u1", "cp-1", "y")), trace.RemoteKMS, trace.NoLog},
		"nobody journals a plugin": {tell().at(20*second, line("encrypt", "u1", "cp-1", "")), trace.Plugin, trace.NoLog},
	} {
		tr := test.s.join(t)
		found := false
		for _, o := range tr.Uncorrelated() {
			for _, g := range o.Gaps {
				found = found || g.Party == test.party && g.Reason == test.reason && g.Text != ""
			}
		}
		if !found {
			t.Errorf("%s: no gap %s of %s in %+v", name, test.reason, test.party, tr.Uncorrelated())
		}
		var out bytes.Buffer
		if err := tr.PrintUncorrelated(&out); err != nil || !strings.Contains(out.String(), test.party+": "+string(test.reason)) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

// What has no uid falls into the time of one call: that is told, and not taken for proof.
func TestWhatHasNoUIDMayBeRecognisedByItsTime(t *testing.T) {
	s := tell().at(20*second, line("encrypt", "u1", "cp-1", "")).at(20*second, tell().call(20*second, "Encrypt", "u1", "cp-1", "y")).at(20*second+500*time.Microsecond, kms("encrypt", "", "cp-1"))
	var out bytes.Buffer
	if err := s.join(t).PrintUncorrelated(&out); err != nil || !strings.Contains(out.String(), "by its time it is a part of u1") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestReadsWhoseRequestIsNotClear(t *testing.T) {
	s := tell().request(8*second, "get", "cp-2", "a", "r-1").request(8*second, "get", "cp-2", "a", "r-2")
	s.operation(8*second+time.Millisecond, trace.Decrypt, "u-dec", "cp-2", "secrets/ns/a", "x")
	if o := s.join(t).Operations[0]; o.Request != "more than one" {
		t.Errorf("%+v", o)
	}
}

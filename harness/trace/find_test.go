package trace_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/trace"
)

func TestFind(t *testing.T) {
	tr := whole().join(t)
	for _, uid := range []string{"u-dec", "u-d"} {
		if ops, err := tr.Find(uid); err != nil || len(ops) != 1 || ops[0].Op != trace.Decrypt {
			t.Errorf("%s: %+v, %v", uid, ops, err)
		}
	}
	for uid, want := range map[string]string{
		"u-":    "2 uids begin with",
		"u-enk": "the history has 2, did you mean \"u-enc\"?",
		"":      "the history has 2",
	} {
		if _, err := tr.Find(uid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", uid, err, want)
		}
	}
	if _, err := tell().join(t).Find("u"); err == nil || !strings.Contains(err.Error(), "no envelope operation at all") {
		t.Errorf("empty: %v", err)
	}
	if _, err := tr.Object("secrets/ns/b"); err == nil || !strings.Contains(err.Error(), "the history has 1, did you mean \"secrets/ns/a\"?") {
		t.Errorf("object: %v", err)
	}
	if _, err := tell().join(t).Object("secrets/ns/b"); err == nil || !strings.Contains(err.Error(), "no encrypted object") {
		t.Errorf("object: %v", err)
	}
}

func TestSlowest(t *testing.T) {
	s := whole()
	c := s.call(20*second, "Decrypt", "u-slow", "cp-1", "")
	c.Took = second
	tr := s.at(21*second, c).join(t)
	if ops := tr.Slowest(1); len(ops) != 1 || ops[0].UID != "u-slow" {
		t.Errorf("%+v", ops)
	}
	if n := len(tr.Slowest(100)); n != 3 {
		t.Errorf("%d of 3", n)
	}
	if n := len(tr.Slowest(-1)); n != 0 {
		t.Errorf("%d of none", n)
	}
}

// What a plugin or a log said does not reach a terminal as it is.
func TestPrintedTextIsSafe(t *testing.T) {
	s := tell()
	c := s.call(20*second, "Encrypt", "u\x1b[2J", "cp-1", "y")
	c.Code, c.Text, c.Outcome = "Internal", "bad\x1b]0;x\nline", "error"
	tr := s.at(20*second, c).join(t)
	var out bytes.Buffer
	for _, err := range []error{trace.PrintChains(&out, tr.Operations), trace.PrintTable(&out, tr.Operations, 0), tr.PrintUncorrelated(&out), tr.PrintSummary(&out)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\x00") {
		t.Errorf("%q", out.String())
	}
}

func TestChainIsPrinted(t *testing.T) {
	var out bytes.Buffer
	tr := whole().join(t)
	story, err := tr.Object("secrets/ns/a")
	if err != nil {
		t.Fatal(err)
	}
	if err := story.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"provider kms-1, kekID kek-1, sealed key sha256:dek", "sealed by encrypt u-enc", "12:00:08.001000  +0s", "remote-kms      ok      in 400µs", "in API request r-read", "key sha256:dek, of 1 write"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

package envelope_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/envelope"
)

const decrypting = `I1231 23:59:59.123456  102816 envelope.go:215] "decrypting content using envelope service" uid="u-1" key="/registry/secrets/a/b c" group="" version="v1" resource="secrets" verb="get"`

func TestDecode(t *testing.T) {
	get := history.EnvelopeRequest{Verb: "get", Version: "v1", Resource: "secrets"}
	now := time.Date(2027, time.January, 1, 0, 0, 1, 0, time.UTC)
	for text, want := range map[string]history.Envelope{
		decrypting: {Hop: "kube-apiserver", Op: "decrypt", UID: "u-1", Node: "cp-1", Object: "/registry/secrets/a/b c", OK: true, For: get},
		strings.Replace(decrypting, "decrypting content using envelope service", "encrypting content using DEK", 1): {Hop: "kube-apiserver", Op: "use", UID: "u-1", Node: "cp-1", Object: "/registry/secrets/a/b c", OK: true, For: get},
		`I1231 23:59:59.123456 1 envelope.go:387] "encrypting content using envelope service" uid="u-2"`:            {Hop: "kube-apiserver", Op: "encrypt", UID: "u-2", Node: "cp-1", OK: true},
	} {
		at, e, err := envelope.Decode("cp-1", text, now)
		if err != nil || e == nil || *e != want {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
		if wantAt := time.Date(2026, time.December, 31, 23, 59, 59, 123456000, time.UTC); !at.Equal(wantAt) {
			t.Errorf("at %v, want %v", at, wantAt)
		}
	}
}

func TestDecodeLeavesOtherLinesAlone(t *testing.T) {
	for _, text := range []string{"", "panic: x", `I1231 23:59:59.123456 1 other.go:1] "encrypting content using DEK"`,
		`I1231 23:59:59.123456 1 envelope.go:1] "something else" uid=x`} {
		if _, e, err := envelope.Decode("cp-1", text, time.Now()); e != nil || err != nil {
			t.Errorf("%q: %v, %v", text, e, err)
		}
	}
}

func TestDecodeNamesWhatIsWrong(t *testing.T) {
	for _, text := range []string{
		`I1331 23:59:59.123456 1 envelope.go:1] "encrypting content using DEK" uid="x"`,
		`I1231 23:59:59.123456 1 envelope.go:1] "encrypting content using DEK" uid="x`,
	} {
		if _, _, err := envelope.Decode("cp-1", text, time.Now()); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(decrypting)
	f.Fuzz(func(t *testing.T, s string) { _, _, _ = envelope.Decode("cp-1", s, time.Unix(0, 0)) })
}

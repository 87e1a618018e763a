package secrecy_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
)

var canary = []byte("\x00canary-\xff-0123456789 and so on")

func guard() *secrecy.Guard {
	g := &secrecy.Guard{}
	g.Add("secrets/ns/a", secrecy.Plain, canary)
	return g
}

func TestValuesAreFoundInEveryForm(t *testing.T) {
	for form, text := range map[string]string{
		"raw":       string(canary),
		"hex":       fmt.Sprintf("%x", canary),
		"HEX":       fmt.Sprintf("%X", canary),
		"base64":    base64.StdEncoding.EncodeToString(canary),
		"base64url": base64.URLEncoding.EncodeToString(canary),
		"quoted":    fmt.Sprintf("%q", canary),
		"numbers":   fmt.Sprint(canary),
	} {
		line := []byte(`{"uid":"u","request":"` + text + `"}`)
		if f, found := guard().Search(line); !found || f.Object != "secrets/ns/a" || f.What != secrecy.Plain {
			t.Errorf("%s: %+v, %v in %s", form, f, found, line)
		}
	}
}

func TestNothingElseIsFound(t *testing.T) {
	short := guard()
	short.Add("b", secrecy.Plain, []byte("short"))
	if short.Values() != 1 {
		t.Errorf("%d values: one of 5 bytes may be anywhere", short.Values())
	}
	for _, text := range []string{"", "short", `uid="16cca714-0a8a-4c6c-b60b-4dae1fed0dbc" key="/registry/secrets/default/data-1" name=""`,
		"sha256:d739fbc69cfd3083fcb3c3455a1a9b20c26d6d38cf33830c7db009e87d13b996", string(canary[:15]), strings.Repeat("\x00c", 100)} {
		if f, found := short.Search([]byte(text)); found {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestRecorderTellsOfFindsAndOfHowMuchItSearched(t *testing.T) {
	log := history.NewLog(nil)
	r := &secrecy.Recorder{Sink: log, Now: time.Now}
	r.Line("log/cp-1", canary) // nobody knows it yet
	r.Add("secrets/ns/a", secrecy.Plain, canary)
	r.Line("log/cp-1", []byte("nothing"))
	for range 30 {
		r.Line("journal/cp-1/1", fmt.Appendf(nil, "detail %x", canary))
	}
	r.Close()
	r.Close()
	events := log.Events()
	if len(events) != 22 {
		t.Fatalf("%d events, expected 20 finds and 2 sums", len(events))
	}
	if s := *events[0].Secrecy; s != (history.Secrecy{Log: "journal/cp-1/1", Lines: 1, Values: 1, Object: "secrets/ns/a", What: "value", Form: "hex"}) {
		t.Errorf("%+v", s)
	}
	if s := *events[21].Secrecy; s != (history.Secrecy{Log: "log/cp-1", Lines: 1, Values: 1}) {
		t.Errorf("%+v", s)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add([]byte("x"))
	g := guard()
	f.Fuzz(func(_ *testing.T, line []byte) { _, _ = g.Search(line) })
}

// A line of an API server's log beside a thousand values.
func BenchmarkSearch(b *testing.B) {
	g := &secrecy.Guard{}
	for i := range 1000 {
		g.Add("x", secrecy.Plain, fmt.Appendf(nil, "%08d-value-of-an-object", i*7919))
	}
	line := []byte(strings.Repeat(`I1121 19:32:21.880394   27998 envelope.go:284] "encrypting content using DEK" uid="5ad5dcf9-1c05-499d-bc0e-c30eff3187e8" `, 3))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, found := g.Search(line); found {
			b.Fatal("found")
		}
	}
}

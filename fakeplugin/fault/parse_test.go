package fault

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEveryDefinitionHoldsTogether(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range (Catalogue{}).Definitions() {
		if seen[d.Name] || d.Name != strings.ToLower(d.Name) {
			t.Errorf("name %q is not unique kebab-case", d.Name)
		}
		seen[d.Name] = true
		if !strings.HasSuffix(d.Summary, ".") || d.Scope == "" || (d.Shape == nil && d.socket == nil) {
			t.Errorf("%s: needs a summary, a scope and an effect", d.Name)
		}
		if d.strikesCalls() != (len(d.Methods) > 0 && len(d.Default) > 0) {
			t.Errorf("%s: methods %v and default %v do not fit its effect", d.Name, d.Methods, d.Default)
		}
		params := append(slices.Clone(d.Params), d.Bounds()...)
		for _, p := range params {
			if p.Summary == "" || p.Kind == "" {
				t.Errorf("%s: parameter %s needs a kind and a summary", d.Name, p.Name)
			}
		}
		if _, err := (Catalogue{}).Parse(d.Name, nil); err != nil {
			t.Errorf("%s without parameters: %v", d.Name, err)
		}
	}
}

func TestParseFlag(t *testing.T) {
	f, err := Catalogue{}.ParseFlag(`grpc-status:code=RESOURCE_EXHAUSTED,text=slow\, please,method=status+Encrypt,count=3,for=10s,probability=0.5`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"code": "ResourceExhausted", "text": "slow, please", "method": "Status+Encrypt", "count": 3, "for": "10s", "probability": 0.5}
	if got := f.Params(); !maps.Equal(got, want) {
		t.Errorf("params %v, want %v", got, want)
	}
}

func TestParseErrorsAreOneClearLine(t *testing.T) {
	for in, want := range map[string]string{
		"hnag":                                      `did you mean "hang"?`,
		"key-id-emtpy":                              `did you mean "key-id-empty"?`,
		"quantum":                                   `there is no fault "quantum": kmsharness faults lists all`,
		"delay:bye=1s":                              `did you mean "by"?`,
		"delay:nonsense=1s":                         "it has: by, distribution",
		"delay:by=5":                                "a duration such as 250ms",
		"delay:by=-1s":                              "from 0s to 1h0m0s",
		"delay:by=2h":                               "from 0s to 1h0m0s",
		"delay:distribution=normal":                 "one of fixed, uniform, heavy-tailed",
		"delay:distribution=uniform,max=1ms":        "max 1ms is less than by 100ms",
		"delay:by=1s,by=2s":                         "each parameter once",
		"delay:by":                                  "NAME:PARAM=VALUE",
		"delay:count=0":                             "a whole number from 1",
		"delay:count=1.5":                           "a whole number from 1",
		"delay:probability=2":                       "a number from 0 to 1",
		"delay:probability=NaN":                     "a number from 0 to 1",
		"delay:method=Stat":                         "expected Status, Encrypt, Decrypt",
		"delay:for=0s":                              "for: got",
		"healthz:method=Encrypt":                    "it cannot strike Encrypt",
		"hang:until=time":                           "need each other",
		"hang:time=1s":                              "need each other",
		"grpc-status:code=OK":                       "expected the name of a gRPC code",
		"grpc-status:code=0":                        "see nil-response",
		"grpc-status:code=Unavailabel":              "expected the name of a gRPC code",
		"socket-removed:count=1":                    `there is no parameter "count"`,
		"socket-permissions:mode=0999":              "octal mode",
		"key-id-mismatch:method=all":                "cannot strike Decrypt",
		"key-id-mismatch:method=Status+Encrypt":     "Status or Encrypt alone",
		"hostile-text:method=Encrypt":               "choose in=error",
		"hostile-text:kind=huge,method=all":         "choose in=error",
		"crash:count=2":                             "need on=call",
		"connection-reset:truncate=perhaps":         "true or false",
		"healthz:text=" + strings.Repeat("x", 1025): "at most 1024",
	} {
		_, err := Catalogue{}.ParseFlag(in)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", in, err, want)
		}
	}
	if _, err := (Catalogue{}).Parse("delay", map[string]any{"by": []any{"1s"}}); err == nil || !strings.Contains(err.Error(), "a duration") {
		t.Errorf("a list for a duration: %v", err)
	}
}

// What is shown of a fault can be injected again and is the same fault.
func TestSpecRoundTrip(t *testing.T) {
	for _, d := range (Catalogue{}).Definitions() {
		f, err := Catalogue{}.Parse(d.Name, map[string]any{"for": "7s"})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var spec Spec
		if err := json.Unmarshal(b, &spec); err != nil {
			t.Fatal(err)
		}
		again, err := Catalogue{}.Parse(spec.Name, spec.Params)
		if err != nil || !maps.Equal(again.Params(), f.Params()) || again.For != 7*time.Second {
			t.Errorf("%s: %s became %v, %v", d.Name, b, again.Params(), err)
		}
	}
}

func FuzzParseFlag(f *testing.F) {
	for _, name := range (Catalogue{}).Names() {
		f.Add(name + ":for=1s,method=all")
	}
	f.Fuzz(func(t *testing.T, s string) {
		parsed, err := Catalogue{}.ParseFlag(s)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("%q: the error is not one line: %q", s, err)
			}
			return
		}
		if _, err := json.Marshal(parsed); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	})
}

// A fault in force is read as it was written, also one of another module.
func TestActiveIsReadAsWritten(t *testing.T) {
	for _, text := range []string{
		`{"id":"f1","name":"hang","params":{"count":2,"for":"7s","method":"Status","probability":0.5,"until":"released"},"injected":"2000-01-01T00:00:00Z","hits":2,"spent":true}`,
		`{"id":"f2","name":"of-others","params":{"volume":11},"injected":"2000-01-01T00:00:00Z","hits":0,"spent":false}`,
	} {
		var a Active
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(a)
		if err != nil || string(again) != text {
			t.Errorf("%v\n got %s\nwant %s", err, again, text)
		}
	}
}

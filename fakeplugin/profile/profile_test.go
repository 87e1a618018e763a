package profile

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// The five providers of the plugin management seed and HashiCorp's own plugin are there, each under the name of its file, with failures and sources.
func TestBuiltins(t *testing.T) {
	if got := strings.Join((Catalogue{}).Names(), " "); got != "aws azure gcp hashicorp thales vault" {
		t.Fatalf("profiles: %s", got)
	}
	for _, name := range (Catalogue{}).Names() {
		p, err := Catalogue{}.Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Name != name || len(p.Failures) < 4 || len(p.Latency) != 3 {
			t.Errorf("%s: name %q, %d failures, latency of %d methods", name, p.Name, len(p.Failures), len(p.Latency))
		}
		for _, l := range p.Latency {
			if l.Most > 250*time.Millisecond { // the local backend's probes have a deadline of 500 ms
				t.Errorf("%s: a call that is as it should be may take %v", name, l.Most)
			}
		}
	}
}

func TestKeyIDs(t *testing.T) {
	first := Key{Name: "key-1", KEK: "kek-a1", Version: 1, Created: time.Unix(1700000000, 0)}
	second := Key{Name: "key-1", KEK: "kek-b2", Version: 2, Created: time.Unix(1700000009, 0)}
	other := Key{Name: "key-2", KEK: "kek-c3", Version: 1}
	for name, want := range map[string]string{
		"aws":       "arn:aws:kms:us-east-1:123456789012:key/38608a2a-4ad9-4e2c-8d4b-3e7f8ea5d5b6",
		"vault":     "1",
		"gcp":       "projects/example/locations/europe-west1/keyRings/openshift/cryptoKeys/key-1/cryptoKeyVersions/1",
		"thales":    "6b656b2d6131",
		"hashicorp": base64.StdEncoding.EncodeToString([]byte("\n\x05admin\x12\x1ehttps://vault.example.com:8200\x1a\x07transit\"\x05key-1(\x01")),
	} {
		p, err := Catalogue{}.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.KeyID.Of(first); len(got) != len(want) || (name != "aws" && got != want) {
			t.Errorf("%s: key_id %q, want one like %q", name, got, want)
		}
	}
	for _, name := range (Catalogue{}).Names() {
		p, err := Catalogue{}.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if changed := p.KeyID.Of(first) != p.KeyID.Of(second); changed != p.KeyID.ChangesOnRotation {
			t.Errorf("%s: a rotation shows: %t, the file says %t", name, changed, p.KeyID.ChangesOnRotation)
		}
		if name != "vault" && p.KeyID.Of(first) == p.KeyID.Of(other) { // Vault's is a number, which another key may have as well
			t.Errorf("%s: two keys have the key_id %q", name, p.KeyID.Of(first))
		}
		if p.KeyID.Of(Key{Name: "key-1"}) != "" {
			t.Errorf("%s: a key_id before the first contact", name)
		}
	}
}

func TestLatencyByQuantile(t *testing.T) {
	l := Latency{Least: 10, Half: 20, Most99: 118, Most: 200}
	for q, want := range map[float64]time.Duration{0: 10, 0.25: 15, 0.5: 20, 0.745: 69, 0.99: 118, 1: 200} {
		if got := l.Of(q); got != want {
			t.Errorf("at %v: %d, want %d", q, got, want)
		}
	}
	if (Latency{}).Of(0.999) != 0 {
		t.Error("no latency takes time")
	}
}

const good = `name: mine
summary: s
plugin: p
keyID: {template: "k-{version}", changesOnRotation: true, why: w}
latency:
  Status: {least: 1ms, half: 2ms, most99: 3ms, most: 4ms}
  Encrypt: {least: 1ms, half: 2ms, most99: 3ms, most: 4ms}
  Decrypt: {least: 1ms, half: 2ms, most99: 3ms, most: 4ms}
failures:
- name: gone
  summary: s
  source: s
  Status: {healthz: not well}
  Encrypt: {code: Unavailable, text: gone, after: 2s}
`

func TestAFileOfOnesOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Catalogue{}.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Failure("gone")
	if err != nil || f.Methods["Status"].Healthz != "not well" || f.Methods["Encrypt"] != (Answer{Code: codes.Unavailable, Text: "gone", After: 2 * time.Second}) ||
		strings.Join(f.Strikes(), "+") != "Status+Encrypt" {
		t.Errorf("failure %+v, %v", f, err)
	}
	if _, err := p.Failure("lost"); err == nil || !strings.Contains(err.Error(), "it has: gone") {
		t.Errorf("an unknown failure: %v", err)
	}
	if _, err := (Catalogue{}).Load(file + "x.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := (Catalogue{}).Load("awss"); err == nil || !strings.Contains(err.Error(), "there are: aws, azure") {
		t.Errorf("an unknown name: %v", err)
	}
}

// Every mistake is told with its line and what was expected.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{good, "", "f.yaml:1: file is empty"},
		{good, "name: [", "f.yaml:2: not valid YAML"},
		{"summary: s\nplugin", "sumary: s\nplugin", `f.yaml:2: unknown field "sumary" in the profile, expected name, summary`},
		{"name: mine\n", "", `f.yaml:1: field "name" is missing in the profile`},
		{"plugin: p\n", "plugin: p\nplugin: q\n", `f.yaml:4: field "plugin" occurs twice`},
		{"name: mine", "name: Mine", `f.yaml:1: name is "Mine", expected small letters`},
		{"name: mine", "name: 7", `f.yaml:1: name is "7", expected a text`},
		{"k-{version}", "k-{verson}", `f.yaml:4: template has {verson}, expected one of`},
		{"k-{version}", "k-{key}", `f.yaml:4: changesOnRotation is true, and the template is the same for all versions`},
		{"changesOnRotation: true", "changesOnRotation: false", `f.yaml:4: changesOnRotation is false, and the template differs`},
		{"changesOnRotation: true", "changesOnRotation: ja", `f.yaml:4: changesOnRotation is "ja", expected true or false`},
		{"Status: {least: 1ms", "Status: {least: 9ms", `f.yaml:6: latency of Status: got 9ms, 2ms, 3ms, 4ms, expected least <= half`},
		{"Status: {least: 1ms", "Status: {least: 1", `f.yaml:6: least is "1", expected a duration such as 15ms`},
		{"Status: {least: 1ms, ", "Status: {", `f.yaml:6: field "least" is missing in latency of Status`},
		{"code: Unavailable", "code: UNAVAILABLE", `f.yaml:14: code is "UNAVAILABLE", expected one of Canceled`},
		{"code: Unavailable, text: gone, ", "code: Unavailable, ", `f.yaml:14: Encrypt has one of code and text, expected both`},
		{"Encrypt: {code: Unavailable, text: gone, after: 2s}", "Encrypt: {healthz: bad}", `f.yaml:14: healthz in Encrypt`},
		{"  Status: {healthz: not well}\n  Encrypt: {code: Unavailable, text: gone, after: 2s}\n", "", `f.yaml:10: failure "gone" strikes nothing`},
		{"- name: gone\n", "- name: gone\n  summary: s\n  source: s\n  Status: {after: 1s}\n- name: gone\n", `f.yaml:14: failure "gone" occurs twice`},
		{"failures:\n", "failures: none\nx:\n", `f.yaml:9: failures: expected a list`},
		{"summary: s\nplugin", "summary: &a s\nplugin", `f.yaml:2: anchor &a`},
		{"summary: s\nplugin", "summary: !x s\nplugin", `f.yaml:2: tag !x`},
		{"failures:", "lease: {ttl: 1s, longest: 5s, lost: gone, refused: gone}\nfailures:", "f.yaml:9: lease: got ttl 1s and longest 5s, expected 2s <= ttl <= longest"},
		{"failures:", "lease: {ttl: 6s, longest: 5s, lost: gone, refused: gone}\nfailures:", "f.yaml:9: lease: got ttl 6s and longest 5s"},
		{"failures:", "lease: {ttl: 6s, longest: 9s, lost: away, refused: gone}\nfailures:", `f.yaml:9: lost: the profile mine has no failure "away"`},
		{"failures:", "lease: {ttl: 6s, longest: 9s, lost: gone}\nfailures:", `f.yaml:9: field "refused" is missing in lease`},
		{good, good + "---\nname: other\n", "f.yaml:15: a second document"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%q is not in the file", c.old)
		}
		_, err := Parse("f.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in place of %q: %v\n\twant %s", c.new, c.old, err, c.want)
		}
	}
	if _, err := Parse("f.yaml", []byte(strings.Replace(strings.Replace(good, "name: mine", "name: M", 1), "ms", "m", 1))); err == nil || len(strings.Split(err.Error(), "\n")) != 2 {
		t.Errorf("two mistakes at once: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if p, err := Parse("f", text); err == nil {
			_ = p.KeyID.Of(Key{Name: "k", KEK: "k"})
		}
	})
}

package keyring

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newRing(t testing.TB, versions int) *Ring {
	t.Helper()
	r := New(rand.Reader)
	for range versions {
		if _, err := r.Rotate(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func codeOf(err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// Whatever is rotated, reused, disabled and enabled: every ciphertext opens under its own KEK while that is enabled,
// and no two KEKs share an id.
func TestEveryPastKEKDecrypts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(rand.Reader)
		type sealed struct {
			version    int
			plain, enc []byte
		}
		var all []sealed
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if _, err := r.Rotate(time.Now()); err != nil {
				t.Fatal(err)
			}
			k, _ := r.Current()
			plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
			enc, used, err := r.Seal(Ref{ID: k.ID}, plain)
			if err != nil || used.Version != k.Version {
				t.Fatalf("seal under %v: %v, %v", k, used, err)
			}
			all = append(all, sealed{k.Version, plain, enc})
		}
		ids := map[string]bool{}
		for _, k := range r.List() {
			ids[k.ID] = true
		}
		if len(ids) != len(r.List()) {
			t.Fatalf("%d ids for %d KEKs", len(ids), len(r.List()))
		}
		for _, s := range all {
			got, _, err := r.Open(s.enc)
			if err != nil || !bytes.Equal(got, s.plain) {
				t.Fatalf("open version %d: %q, %v", s.version, got, err)
			}
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	r := newRing(t, 2)
	enc, _, err := r.Seal(Ref{Version: 1}, []byte("seed"))
	if err != nil {
		t.Fatal(err)
	}
	with := func(at int, b byte) []byte {
		changed := bytes.Clone(enc)
		changed[at] = b
		return changed
	}
	for name, c := range map[string]struct {
		enc  []byte
		code string
	}{
		"of another KEK":     {with(versionBytes-1, 2), CodeCiphertext},
		"changed":            {with(len(enc)-1, enc[len(enc)-1]^1), CodeCiphertext},
		"short":              {enc[:Overhead-1], CodeCiphertext},
		"of no version":      {with(versionBytes-1, 0), CodeCiphertext},
		"of a huge version":  {with(0, 0xff), CodeCiphertext},
		"of an unknown KEK":  {with(versionBytes-1, 3), CodeUnknown},
		"not even a version": {nil, CodeCiphertext},
	} {
		if _, _, err := r.Open(c.enc); codeOf(err) != c.code {
			t.Errorf("a ciphertext %s: %v, want code %s", name, err, c.code)
		}
	}
	for _, ref := range []Ref{{Version: 3}, {ID: "kek-0"}} {
		if _, _, err := r.Seal(ref, nil); codeOf(err) != CodeUnknown {
			t.Errorf("seal under %v: %v, want code %s", ref, err, CodeUnknown)
		}
	}
}

func TestStatesAreReversible(t *testing.T) {
	r := newRing(t, 1)
	enc, _, err := r.Seal(Ref{Version: 1}, []byte("seed"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state      State
		denied     []Operation
		seal, open string
	}{
		{Disabled, nil, CodeDisabled, CodeDisabled},
		{Deleted, nil, CodeDeleted, CodeDeleted},
		{Enabled, []Operation{Decrypt}, "", CodeDenied},
		{Enabled, []Operation{Encrypt}, CodeDenied, ""},
		{Enabled, nil, "", ""},
	} {
		if _, err := r.SetState(1, c.state, c.denied); err != nil {
			t.Fatal(err)
		}
		_, _, sealErr := r.Seal(Ref{Version: 1}, []byte("x"))
		_, _, openErr := r.Open(enc)
		if codeOf(sealErr) != c.seal || codeOf(openErr) != c.open {
			t.Errorf("%s %v: seal %v, open %v; want %q, %q", c.state, c.denied, sealErr, openErr, c.seal, c.open)
		}
	}
	if _, err := r.SetState(1, "gone", nil); codeOf(err) != CodeInvalid {
		t.Errorf("an unknown state: %v", err)
	}
}

func TestReuseIsOnlyOnDemand(t *testing.T) {
	r := newRing(t, 2)
	first := r.List()[0]
	if k, err := r.Reuse(1); err != nil || k.ID != first.ID {
		t.Fatalf("Reuse(1) = %v, %v", k, err)
	}
	if k, err := r.Rotate(time.Now()); err != nil || k.Version != 3 || k.ID == first.ID {
		t.Errorf("rotation after a reuse: %v, %v", k, err)
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	r := newRing(t, 3)
	enc, _, _ := r.Seal(Ref{Version: 2}, []byte("seed"))
	if _, err := r.SetState(3, Disabled, nil); err != nil {
		t.Fatal(err)
	}
	again, err := Restore(rand.Reader, r.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := again.Open(enc); err != nil || string(got) != "seed" {
		t.Errorf("open after restore: %q, %v", got, err)
	}
	if k, _ := again.Current(); k.State != Disabled || k.Version != 3 {
		t.Errorf("current after restore: %v", k)
	}
	for name, broken := range map[string]Snapshot{
		"a missing version": {Current: 1, KEKs: []SecretKEK{{KEK: KEK{ID: "a", Version: 2, State: Enabled}, Secret: make([]byte, 32)}}},
		"a short secret":    {Current: 1, KEKs: []SecretKEK{{KEK: KEK{ID: "a", Version: 1, State: Enabled}, Secret: []byte("x")}}},
		"no such current":   {Current: 2},
		"an unknown state":  {Current: 1, KEKs: []SecretKEK{{KEK: KEK{ID: "a", Version: 1, State: "x"}, Secret: make([]byte, 32)}}},
	} {
		if _, err := Restore(rand.Reader, broken); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
}

func TestVersionsAreBounded(t *testing.T) {
	r := newRing(t, MaxKEKs)
	if _, err := r.Rotate(time.Now()); codeOf(err) != CodeInvalid {
		t.Errorf("one rotation too many: %v", err)
	}
}

package encryption_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/kmsharness/kmsharness/operator/encryption"
)

func list(t *testing.T, names string) List {
	t.Helper()
	var l List
	for _, name := range strings.Fields(names) {
		kind, id, _ := strings.Cut(name, "-")
		p := Provider{Type(kind), id}
		if kind == "kms" {
			p.Type = KMS
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		l = append(l, p)
	}
	return l
}

func shown(stages []Stage) []string {
	var out []string
	for _, s := range stages {
		text := strings.Join(s.Providers.Names(), " ")
		if s.Migrate {
			text += " !"
		}
		out = append(out, text)
	}
	return out
}

func TestStages(t *testing.T) {
	for _, test := range []struct {
		name, now, to string
		want          []string
	}{
		{"nothing", "kms-1 identity", "kms-1 identity", nil},
		{"on", "identity", "kms-1 identity", []string{"identity kms-1", "kms-1 identity !"}},
		{"off", "kms-1 identity", "identity", []string{"identity kms-1 !", "identity"}},
		{"KMS to aescbc", "kms-1 identity", "aescbc-2 identity", []string{"kms-1 aescbc-2 identity", "aescbc-2 kms-1 identity !", "aescbc-2 identity"}},
		{"KMS to KMS", "kms-1 identity", "kms-2 identity", []string{"kms-1 kms-2 identity", "kms-2 kms-1 identity !", "kms-2 identity"}},
		{"both stay", "kms-1 identity", "kms-2 kms-1 identity", []string{"kms-1 kms-2 identity", "kms-2 kms-1 identity !"}},
		{"one goes", "kms-2 kms-1 identity", "kms-2 identity", []string{"kms-2 kms-1 identity !", "kms-2 identity"}},
		{"in the middle of another", "aescbc-2 kms-1 identity", "kms-3 identity", []string{"aescbc-2 kms-1 kms-3 identity", "kms-3 aescbc-2 kms-1 identity !", "kms-3 identity"}},
		{"back in the middle", "aescbc-2 kms-1 identity", "kms-1 identity", []string{"kms-1 aescbc-2 identity !", "kms-1 identity"}},
		{"back before it wrote", "kms-1 aescbc-2 identity", "kms-1 identity", []string{"kms-1 aescbc-2 identity !", "kms-1 identity"}},
		{"off in the middle", "aescbc-2 kms-1 identity", "identity", []string{"identity aescbc-2 kms-1 !", "identity"}},
	} {
		if got := shown(Switch(list(t, test.now), list(t, test.to))); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// API servers that load each stage at different times can always read what any of them has written, also when switches are
// given up in the middle.
func TestNothingIsEverUnreadable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.Custom(func(t *rapid.T) List {
			kind := rapid.SampledFrom([]Type{Identity, AESCBC, AESGCM, KMS}).Draw(t, "type")
			return Of(kind, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2", "3"}), 1, 2, rapid.ID).Draw(t, "keys")...)
		})
		now := target.Draw(t, "before")
		left := now // whatever may have objects
		for range rapid.IntRange(1, 6).Draw(t, "switches") {
			to := target.Draw(t, "to")
			stages := Switch(now, to)
			given := rapid.IntRange(0, len(stages)).Draw(t, "given up after")
			for _, s := range stages[:given] {
				if err := s.Providers.Follows(now, left); err != nil {
					t.Fatalf("%v after %v: %v", s.Providers, now, err)
				}
				now = s.Providers
				left = append(slices.Clone(left), now.Writer())
				if s.Migrate {
					left = List{now.Writer()}
				}
			}
			if given == len(stages) && !slices.Equal(now, to) {
				t.Fatalf("ended with %v, want %v", now, to)
			}
		}
	})
}

// Follows catches what the stages are there to prevent.
func TestFollows(t *testing.T) {
	for _, test := range []struct{ name, before, after, left, want string }{
		{"writes at once", "kms-1 identity", "kms-2 kms-1 identity", "kms-1", "kms-2 would write before every API server can read it"},
		{"goes too early", "kms-2 kms-1 identity", "kms-2 identity", "kms-1", "kms-1 would go while objects may lie under it"},
		{"read provider not kept", "kms-1 kms-2 identity", "kms-2 identity", "kms-1", "kms-1 would go"},
		{"twice", "kms-1", "kms-1 kms-1", "", "kms-1 occurs twice"},
		{"nothing", "kms-1", "", "", "no provider"},
		{"good", "kms-1 kms-2 identity", "kms-2 kms-1 identity", "kms-1 kms-2", ""},
	} {
		err := list(t, test.after).Follows(list(t, test.before), list(t, test.left))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestProviders(t *testing.T) {
	for p, want := range map[Provider]string{
		{Identity, "1"}: "it has no key", {KMS, ""}: "letters, digits", {KMS, "a:b"}: "letters, digits", {AESCBC, ""}: "letters, digits", {"secretbox", "1"}: "expected identity, aescbc",
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", p, err, want)
		}
	}
	l := Of(AESGCM, "2", "1")
	if got := l.String(); got != "aesgcm-2, aesgcm-1, identity" {
		t.Error(got)
	}
	if got := l.KeyIDs(AESGCM); !slices.Equal(got, []string{"2", "1"}) || len(Of(Identity)) != 1 || List(nil).Writer() != Clear() {
		t.Error(got)
	}
}

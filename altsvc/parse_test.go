package altsvc

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

// FuzzParse: Parse does not panic, and String writes what Parse reads.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"clear", `h2=":8000"`, `h2="alt.example.com:8000", h2=":443"; ma=60; persist=1`, `w%3Dx%3Ay#z="[::1]:1"`, `h2="a\:1`, `,, h2=":1" ,`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		field, err := Parse(text)
		if err != nil {
			return
		}
		if len(field.Alternatives) > maxAlternatives {
			t.Fatalf("%d alternatives", len(field.Alternatives))
		}
		if !field.Clear && len(field.Alternatives) == 0 {
			return // nothing is left to write
		}
		again, err := Parse(field.String())
		if err != nil {
			t.Fatalf("Parse(%q) of Parse(%q): %v", field, text, err)
		}
		if !reflect.DeepEqual(field, again) {
			t.Fatalf("Parse(%q) = %+v, written as %q and read as %+v", text, field, field, again)
		}
	})
}

// A field that does not have the form of the RFC is refused as one, and the error names the place.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"":                              errEmpty,
		" , ,":                          errEmpty,
		"h2":                            errEquals,
		"Clear":                         errEquals, // the keyword is case-sensitive
		"clear; ma=1":                   errEquals,
		`h2=":443`:                      errUnterminated,
		`h2=":443\`:                     errUnterminated,
		`h2=443`:                        errQuoted,
		`="a:1"`:                        errToken,
		`h2=":443" h3=":443"`:           errSeparator,
		`h2=":443";`:                    errToken,
		`h2=":443"; ma`:                 errEquals,
		`h2=":443"; ma =1`:              errEquals,
		`h2=":443"; ma=`:                errToken,
		"h2=\"a\x00:443\"":              errCharacter,
		`h2="10.0.0.2:6443", h2="10.0.`: errUnterminated,
	} {
		if field, err := Parse(text); err == nil || !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("Parse(%q) = %+v, %v; want %v", text, field, err, want)
		}
	}
}

// Alternatives with an authority or protocol name that is not valid are left out; the others count.
func TestParseLeavesOut(t *testing.T) {
	for _, member := range []string{
		`h2=""`, `h2="host"`, `h2="host:"`, `h2="host:0"`, `h2="host:65536"`, `h2="host:+1"`, `h2="ho st:1"`, `h2="[::1:1"`, `h2="[1.2.3.4]:1"`,
		`h2="::1:1"`, `h2="[fe80::1%25eth0]:1"`, `h2="bücher.example:1"`, `h2="h%6Fst:1"`,
		`%68%32=":1"`, `h%3d=":1"`, `h%3=":1"`, `h%GG=":1"`,
	} {
		field, err := Parse(member + `, h2="good:1"`)
		if err != nil || len(field.Alternatives) != 1 || field.Alternatives[0].Host != "good" {
			t.Errorf("with %s: %+v, %v", member, field, err)
		}
	}
}

func TestParseBoundsAlternatives(t *testing.T) {
	var members []string
	for i := range 2 * maxAlternatives {
		members = append(members, fmt.Sprintf(`h2="host-%d:1"`, i))
	}
	field, err := Parse(members...)
	if err != nil || len(field.Alternatives) != maxAlternatives || field.Alternatives[0].Host != "host-0" {
		t.Errorf("%d alternatives, %v", len(field.Alternatives), err)
	}
}

// S4-05: a static list has hosts, host:port pairs and https URLs.
func TestParseStatic(t *testing.T) {
	got, err := ParseStatic([]string{"10.0.0.2", "10.0.0.3:7443", "https://10.0.0.4", "https://CP-1.example:8443/", "fd00::1", "[fd00::2]", "[fd00::3]:1"}, "api-int:6443")
	want := []string{"10.0.0.2:6443", "10.0.0.3:7443", "10.0.0.4:6443", "cp-1.example:8443", "[fd00::1]:6443", "[fd00::2]:6443", "[fd00::3]:1"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"", "http://10.0.0.2", "https://10.0.0.2/path", "10.0.0.2:0", "10.0.0.2:port", "a b"} {
		if got, err := ParseStatic([]string{bad}, "api-int:6443"); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}

package scenario_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// FuzzParse: no input panics; what is accepted is also valid as a value; what is refused says where, one line each.
func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(strings.Replace(valid, "wait: 2I", "attempt: {as: cp-1, verb: create, resource: secrets, expect: denied, body: {1: [.inf, -.NaN], on: 2026-11-29, x: {true: 0x10, 2.5: null}}}", 1)))
	for _, m := range malformedFiles() {
		if m.replace[0] == "" {
			f.Add([]byte(m.replace[1]))
			continue
		}
		f.Add([]byte(strings.Replace(valid, m.replace[0], m.replace[1], 1)))
	}
	p := parser(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := p.Parse("plugin-hangs.yaml", data)
		if err == nil {
			if again := p.Validate(s); again != nil {
				t.Fatalf("accepted as a file, refused as a value: %v", again)
			}
			for _, a := range s.Actions() {
				if _, err := json.Marshal(scenario.Params(a)); err != nil {
					t.Fatalf("no history can hold %s: %v", scenario.Line(a, nil), err)
				}
			}
			return
		}
		var problems scenario.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("error is %T, expected problems: %v", err, err)
		}
		for _, p := range problems {
			if p.Pos.Line < 1 || p.Pos.Column < 1 || strings.ContainsAny(p.String(), "\n\r") {
				t.Errorf("problem %q at %+v, expected one line with a position", p, p.Pos)
			}
		}
	})
}

// FuzzDuration: a duration resolves to something from zero to the most that is allowed, or is an error.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"4I + A", "2.5I", "500ms", "detection", "detection + 4s", "1e9s", "99999999999m", "-1s", "", "3 i"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := scenario.D(text).Resolve(timing())
		if err == nil && (d < 0 || d > scenario.MaxDuration) {
			t.Errorf("%q is %v", text, d)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of more than one line: %q", err)
		}
	})
}

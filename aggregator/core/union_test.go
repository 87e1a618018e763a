package core

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
)

func TestUnion(t *testing.T) {
	a := func(kind, status, reason string) Condition {
		return Condition{Type: kind, Status: status, Reason: reason, Message: "m-" + kind}
	}
	for name, c := range map[string]struct {
		sources []Condition
		kind    string
		want    string
		message string
	}{
		"nothing":              {nil, "Degraded", "False/AsExpected", "All is well"},
		"nothing available":    {nil, "Available", "True/AsExpected", "All is well"},
		"any true degrades":    {[]Condition{a("XDegraded", True, "R"), a("YDegraded", Unknown, "S")}, "Degraded", "True/X_R", "XDegraded: m-XDegraded"},
		"two are joined":       {[]Condition{a("YDegraded", True, "S"), a("XDegraded", True, "R")}, "Degraded", "True/X_R::Y_S", "XDegraded: m-XDegraded\nYDegraded: m-YDegraded"},
		"unknown beats good":   {[]Condition{a("XDegraded", Unknown, "R"), a("YDegraded", False, "S")}, "Degraded", "Unknown/X_R", "XDegraded: m-XDegraded"},
		"any false avails not": {[]Condition{a("XAvailable", False, "R"), a("YAvailable", Unknown, "S")}, "Available", "False/X_R", "XAvailable: m-XAvailable"},
		"all good":             {[]Condition{a("XAvailable", True, "R"), a("YAvailable", True, "S")}, "Available", "True/AsExpected", "XAvailable: m-XAvailable\nYAvailable: m-YAvailable"},
		"odd status":           {[]Condition{a("XProgressing", "Perhaps", "R")}, "Progressing", "Unknown/X_R", "XProgressing: m-XProgressing"},
		"no report by suffix":  {[]Condition{a(contract.ConditionType("evilDegraded"), True, "R")}, "Degraded", "False/AsExpected", "All is well"},
	} {
		got, _ := find(union(c.sources), c.kind)
		if got.Status+"/"+got.Reason != c.want || got.Message != c.message {
			t.Errorf("%s: got %s/%s %q, want %s %q", name, got.Status, got.Reason, got.Message, c.want, c.message)
		}
	}
}

func TestUnionPrefixesEveryLineAndIsBounded(t *testing.T) {
	long := Condition{Type: "XDegraded", Status: True, Reason: strings.Repeat("r", 5000), Message: strings.Repeat("word \x00\n", 5000)}
	got, _ := find(union([]Condition{long}), "Degraded")
	if n := utf8.RuneCountInString(got.Message); n > contract.MaxRollupMessageChars || !strings.HasSuffix(got.Message, "more") {
		t.Errorf("message has %d characters and ends %q", n, got.Message[len(got.Message)-20:])
	}
	if n := utf8.RuneCountInString(got.Reason); n > maxReasonChars {
		t.Errorf("reason has %d characters", n)
	}
	for _, l := range strings.Split(got.Message, "\n") {
		if !strings.HasPrefix(l, "XDegraded: ") && !strings.HasPrefix(l, "and ") {
			t.Errorf("line %q does not name its source", l)
		}
	}
}

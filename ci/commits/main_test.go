package main

import (
	"slices"
	"strings"
	"testing"
)

func TestProblems(t *testing.T) {
	const why = "It was needed.\n"
	for _, c := range []struct {
		commit
		want string // part of the only problem; empty: none
	}{
		{commit{subject: "check: an excuse ends with its cause", body: why, changed: 500}, ""},
		{commit{subject: "sim/store: one fast path for applies", changed: 20}, ""},
		{commit{subject: "check, sim: judge what OpenShift's reporter writes"}, ""},
		{commit{subject: ".depguard: follow the packages that moved"}, ""},
		{commit{subject: "add a rule"}, "form"},
		{commit{subject: "Check: add a rule"}, "form"},
		{commit{subject: "check:add a rule"}, "form"},
		{commit{subject: "check: "}, "form"},
		{commit{subject: "check: " + strings.Repeat("é", 65)}, ""},
		{commit{subject: "check: " + strings.Repeat("é", 66)}, "73 characters"},
		{commit{subject: "check: add a rule; cli: print it"}, "semicolon"},
		{commit{subject: "check: add a rule."}, "period"},
		{commit{subject: "check: WIP"}, "unfinished"},
		{commit{subject: "check: fixup of the rule"}, "unfinished"},
		{commit{subject: "check: adds a rule"}, "imperative"},
		{commit{subject: "check: Fixed a rule"}, "imperative"},
		{commit{subject: "check: additional rules"}, ""},
		{commit{subject: "check: used rules stay"}, "imperative"},
		{commit{subject: "check: add a rule", changed: 21}, "21 lines"},
		{commit{subject: "check: add a rule", body: "\nSigned-off-by: A <a@example.com>\n", changed: 21}, "21 lines"},
		{commit{subject: "check: add a rule", body: why + "\nSigned-off-by: A <a@example.com>\n", changed: 21}, ""},
	} {
		got := c.problems()
		if (len(got) == 0) != (c.want == "") || len(got) > 1 || len(got) == 1 && !strings.Contains(got[0], c.want) {
			t.Errorf("%q: %q, want one with %q", c.subject, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse("\x01aa\x00check: one\x00why\n\nmore\n\x00\n3\t2\tcheck/a.go\n-\t-\tpage.png\n\x01bb\x00check: two\x00\x00\n")
	want := []commit{{"aa", "check: one", "why\n\nmore\n", 5}, {"bb", "check: two", "", 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := parse("\x01aa\x00check: one\x00"); err == nil {
		t.Error("an incomplete record is no error")
	}
}

package operand_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// A revision that there was is refused, with the keys that it lacks; one that there never was is a mistake.
func TestRollbackRevision(t *testing.T) {
	under := []history.Under{{Provider: "kms-2", KEKID: "a", Count: 3}, {Provider: "kms-2", KEKID: "b", Count: 4}, {Provider: "kms-3", Count: 1}}
	for _, test := range []struct {
		to       string
		has      int
		existing []int
		want     int
		refused  bool
		text     string
	}{
		{"previous", 6, []int{4, 6, 5}, 5, false, ""},
		{"previous", 5, []int{4, 5, 6}, 4, false, ""},
		{"previous", 4, []int{4, 5, 6}, 0, true, "rollback of cp-2 to the previous revision: none is older than revision 4"},
		{"newest", 4, []int{4, 5, 6}, 6, false, ""},
		{"4", 6, []int{4, 5, 6}, 4, false, ""},
		{"3", 6, []int{4, 5, 6}, 0, true, "rollback of cp-2 to revision 3: it was pruned, there are 4, 5, 6; it has no key kms-2, and 7 objects are under it"},
		{"1", 6, []int{4, 5, 6}, 0, true, "rollback of cp-2 to revision 1: it was pruned, there are 4, 5, 6"},
		{"7", 6, []int{4, 5, 6}, 0, false, "it does not exist yet, the newest is revision 6"},
		{"previous", 0, nil, 0, false, "nothing was ever encrypted"},
	} {
		r := operand.Rollback{Pods: "cp-2", To: test.to}
		got, err := r.Revision(test.has, test.existing, under, func(n int) []string {
			if n == 3 {
				return []string{"kms-3", "kms-1", "identity"}
			}
			return nil
		})
		refusal := new(operand.Refusal)
		if got != test.want || (err != nil) != (test.text != "") || errors.As(err, &refusal) != test.refused || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("to %s of %v: %d, %v, want %d, %q", test.to, test.existing, got, err, test.want, test.text)
		}
	}
}

func TestUnread(t *testing.T) {
	under := []history.Under{{Provider: "kms-2", Count: 3}, {Provider: "identity", Count: 1}}
	for want, providers := range map[string][]string{
		"": {"kms-2", "identity"},
		"it has no key kms-2, and 3 objects are under it":                                                     {"kms-1", "identity"},
		"it has no key identity, and 1 objects are under it; it has no key kms-2, and 3 objects are under it": nil,
	} {
		if got := operand.Unread(providers, under); got != want {
			t.Errorf("%v: %q, want %q", providers, got, want)
		}
	}
}

// Only a refusal is what a step wants that expects one.
func TestRollbackOutcome(t *testing.T) {
	refusal, other := error(&operand.Refusal{Why: "it was pruned"}), errors.New("no API server answers")
	for _, test := range []struct {
		expect string
		err    error
		fails  bool
	}{
		{"", nil, false}, {"", refusal, true}, {"", other, true},
		{scenario.OutcomeRefused, nil, true}, {scenario.OutcomeRefused, refusal, false}, {scenario.OutcomeRefused, other, true},
	} {
		if err := operand.RollbackOutcome(&scenario.Rollback{Expect: test.expect}, test.err); (err != nil) != test.fails {
			t.Errorf("expect %q, %v: %v", test.expect, test.err, err)
		}
	}
}

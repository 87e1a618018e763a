package facts

import (
	"slices"
	"testing"
)

// An entry that a reporter's write did not have is another manager's; where the write is not known, or not the reporter's, nothing is left.
func TestEntriesThatAreLeft(t *testing.T) {
	has := func(keyIDs ...string) (all []Entry) {
		for _, k := range keyIDs {
			all = append(all, Entry{KeyID: k})
		}
		return all
	}
	for name, c := range map[string]struct {
		made *Request
		want []Entry
	}{
		"of an older release": {&Request{Node: "cp-1", Body: Body{Known: true}, Entries: has("2")}, has("2")},
		"of another node":     {&Request{Node: "cp-2", Body: Body{Known: true}, Entries: has("2")}, has("1", "2")},
		"without its body":    {&Request{Node: "cp-1"}, has("1", "2")},
		"not known":           {nil, has("1", "2")},
	} {
		r := &Report{Node: "cp-1", Entries: has("1", "2")}
		r.leftBy(c.made)
		if got := r.Written(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, left %q", name, got, r.Left)
		}
	}
}

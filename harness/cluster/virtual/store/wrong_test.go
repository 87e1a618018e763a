package store

import (
	"testing"

	"pgregory.net/rapid"
)

// Models that are wrong on purpose: the differential test tells each from the real code.
func TestWrongModelsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for name, spoil := range map[string]func(*record){
		"the size of managedFields is not kept up": func(r *record) {
			if l, ok := r.owners.(*ownerList); ok && r.Revision > 4 {
				l.bytes--
			}
		},
		"a second owner of an item is not seen": func(r *record) {
			for id, m := range r.index.managers {
				for i, keys := range m.items {
					for _, key := range keys {
						r.index.lists[i].owners[key] = []managerID{id}
					}
				}
			}
		},
		"an item is looked for where it stood before": func(r *record) {
			for _, l := range r.index.lists {
				for key, at := range l.at {
					l.at[key] = max(0, at-1)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 300 {
				if difference := spoiled(allTypes(t), spoil, seed); difference != "" {
					t.Logf("caught by history %d", seed)
					return
				}
			}
			t.Error("not caught")
		})
	}
}

// spoiled is the difference that a history shows when the model's memory is spoiled before each operation.
func spoiled(types *Types, spoil func(*record), seed int) string {
	return rapid.Custom(func(t *rapid.T) string {
		p := newPair(types)
		p.spoil = func(s *Store) {
			for _, r := range s.objects {
				if r.index != nil {
					spoil(r)
				}
			}
		}
		return history(t, p)
	}).Example(seed)
}

// The histories go through the index often enough to mean something.
func TestHistoriesAreSteadyNowAndThen(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	applies, steady := 0, 0
	for seed := range 50 {
		rapid.Custom(func(t *rapid.T) string {
			p := newPair(allTypes(t))
			d := history(t, p)
			applies, steady = applies+p.applies, steady+p.model.answered
			return d
		}).Example(seed)
	}
	t.Logf("of %d applies the index answered %d", applies, steady)
	if steady*20 < applies {
		t.Error("too few to test them")
	}
}

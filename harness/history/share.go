package history

import (
	"maps"
	"slices"
)

// Share lets a state have what it has in common with the one before, nil for none: a history keeps all states in memory, and little changes from one to the
// next.
func (o *Object) Share(before *Object) {
	if before == nil {
		return
	}
	for i, c := range o.Conditions {
		at := slices.IndexFunc(before.Conditions, func(b *Condition) bool { return b.Type == c.Type })
		if at < 0 {
			continue
		}
		was := before.Conditions[at]
		if *c == *was {
			o.Conditions[i] = was
			continue
		}
		now := *c // the state's other conditions are in the same memory
		keep(&now.Type, was.Type)
		keep(&now.Status, was.Status)
		keep(&now.Reason, was.Reason)
		keep(&now.Message, was.Message)
		keep(&now.LastTransitionTime, was.LastTransitionTime)
		o.Conditions[i] = &now
	}
	for i := range o.HealthReports {
		if i < len(before.HealthReports) && *o.HealthReports[i] == *before.HealthReports[i] {
			o.HealthReports[i] = before.HealthReports[i]
		}
	}
	if maps.EqualFunc(o.Owners, before.Owners, slices.Equal) {
		o.Owners = before.Owners
	}
}

func keep(text *string, was string) {
	if *text == was {
		*text = was
	}
}

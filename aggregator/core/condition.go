package core

import (
	"slices"
	"time"
)

// The three values of a condition's status.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// Condition is one item of a status.conditions list, on the operator's CR or on the ClusterOperator.
type Condition struct {
	Type               string
	Status             string
	Reason             string
	Message            string
	LastTransitionTime time.Time // whole seconds, as the API stores them
}

// find is the condition of the given type; ok is false when there is none.
func find(conditions []Condition, conditionType string) (c Condition, ok bool) {
	i := slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return Condition{}, false
	}
	return conditions[i], true
}

// says is true when c and d would tell a reader the same. The transition time follows from the status.
func (c Condition) says(d Condition) bool {
	return c.Type == d.Type && c.Status == d.Status && c.Reason == d.Reason && c.Message == d.Message
}

// settle gives every wanted condition its transition time, which moves only with the status, and says whether
// anything differs from what stands.
func settle(wanted, standing []Condition, now time.Time) (settled []Condition, changed bool) {
	settled = slices.Clone(wanted)
	for i := range settled {
		old, ok := find(standing, settled[i].Type)
		settled[i].LastTransitionTime = now.UTC().Truncate(time.Second)
		if ok && old.Status == settled[i].Status && !old.LastTransitionTime.IsZero() {
			settled[i].LastTransitionTime = old.LastTransitionTime
		}
		changed = changed || !ok || !old.says(settled[i])
	}
	return settled, changed
}

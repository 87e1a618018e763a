package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Union is how the conditions of an operator's CR are united into those of its ClusterOperator. The zero value is this project's rule without
// inertia: an Unknown condition outweighs good ones and yields to bad ones.
type Union struct {
	// Inertia of the conditions that are united into Degraded. Available and Progressing have none.
	Inertia Inertia `json:"inertia,omitzero"`
	// UnknownIsBad: an Unknown condition is one of the bad ones, as in library-go. The union names it with them, and is Unknown if all of them are.
	// One condition whose inertia is over is enough to report all of them. The aggregator does not unite so.
	UnknownIsBad bool `json:"unknownIsBad,omitempty"`
	// Leave: the status controller of another program writes the ClusterOperator, and the aggregator does not. Two writers would fight.
	Leave bool `json:"leave,omitempty"`
}

// Equal reports whether two unions are the same rule.
func (u Union) Equal(o Union) bool {
	return u.Leave == o.Leave && u.UnknownIsBad == o.UnknownIsBad && u.Inertia.All == o.Inertia.All && maps.Equal(u.Inertia.Types, o.Inertia.Types)
}

// Inertia is how long a condition has to be other than good, by its lastTransitionTime, before the ClusterOperator shows that.
type Inertia struct {
	// All is the inertia of every condition that Types does not name.
	All time.Duration `json:"all,omitempty"`
	// Types is the inertia of single condition types.
	Types map[string]time.Duration `json:"types,omitempty"`
}

// IsZero reports whether no condition has inertia.
func (i Inertia) IsZero() bool { return i.All == 0 && len(i.Types) == 0 }

// Of returns the inertia of a condition type.
func (i Inertia) Of(conditionType string) time.Duration {
	if d, ok := i.Types[conditionType]; ok {
		return d
	}
	return i.All
}

// String is in the form that ParseInertia reads, with commas between the items.
func (i Inertia) String() string {
	items := []string{i.All.String()}
	for _, t := range slices.Sorted(maps.Keys(i.Types)) {
		items = append(items, t+"="+i.Types[t].String())
	}
	return strings.Join(items, ",")
}

// ParseInertia reads items such as "2m" and "NodeControllerDegraded=10m".
func ParseInertia(items []string) (Inertia, error) {
	var out Inertia
	seen := map[string]bool{}
	for _, item := range items {
		conditionType, text, typed := strings.Cut(item, "=")
		if !typed {
			conditionType, text = "", item
		}
		d, err := time.ParseDuration(text)
		switch {
		case err != nil || d < 0:
			return Inertia{}, fmt.Errorf("inertia %q: expected a duration such as 2m, or a condition type and a duration such as NodeControllerDegraded=10m", item)
		case typed && !strings.HasSuffix(conditionType, ClusterOperatorDegraded):
			return Inertia{}, fmt.Errorf("inertia %q: expected a condition type that ends in %s: no other has inertia", item, ClusterOperatorDegraded)
		case seen[conditionType]:
			return Inertia{}, fmt.Errorf("inertia %q: expected one duration for each condition type, and one for all others", item)
		}
		seen[conditionType] = true
		if !typed {
			out.All = d
			continue
		}
		if out.Types == nil {
			out.Types = map[string]time.Duration{}
		}
		out.Types[conditionType] = d
	}
	return out, nil
}

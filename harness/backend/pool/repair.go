package pool

import (
	"errors"
	"slices"
)

// Repair is what brings the nodes of a plane back that scenarios expect: Out leave before In join.
type Repair struct{ Out, In []string }

// PlanRepair compares the nodes that are there with those that are wanted. A node that was isolated, which leaves tells, is a stranger
// whatever its name. It is an error if none of the wanted nodes is left: nothing is there that others could join.
func PlanRepair(wanted, there []string, leaves func(string) bool) (Repair, error) {
	var good []string
	var r Repair
	for _, name := range there {
		if leaves(name) || !slices.Contains(wanted, name) {
			r.Out = append(r.Out, name)
			continue
		}
		good = append(good, name)
	}
	for _, name := range wanted {
		if !slices.Contains(good, name) {
			r.In = append(r.In, name)
		}
	}
	if len(good) == 0 {
		return Repair{}, errors.New("none of the nodes is left that the control plane was made with")
	}
	return r, nil
}

package scenario

// Lifecycles are the values of topology.lifecycle, the default first.
func Lifecycles() []string { return []string{LifecycleDirect, LifecycleOperator} }

// operated checks a topology with an operator: what it does not do yet is refused here, for all backends alike.
func (v *validation) operated(t Topology, at place) {
	if !t.ByOperator() {
		return
	}
	if v.scenario.Operator != Operators()[0] {
		v.add(place{"spec", "operator"}, "operator is %s with lifecycle operator, expected %s: no other API server has one yet", quote(v.scenario.Operator), Operators()[0])
	}
	if t.Start == StartStopped {
		v.add(at.at("start"), "start is stopped with lifecycle operator, expected running: it begins with clear text, so there is nothing to start cold")
	}
}

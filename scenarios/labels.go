package scenarios

import "github.com/kmsharness/kmsharness/harness/scenario"

// Labels are what a label filter selects a scenario by.
func Labels(s *scenario.Scenario) []string {
	topology := "ha"
	if s.Topology.ControlPlanes == 1 {
		topology = "sno"
	}
	out := []string{"name:" + s.Name, "area:" + s.Area, "topology:" + topology}
	for _, a := range s.Actions() {
		if harm := scenario.Harm(a); harm != "" {
			out = append(out, "fault:"+harm)
		}
	}
	if s.Contract != "" {
		out = append(out, "contract:"+s.Contract)
	}
	if s.FormMatters() {
		out = append(out, "form")
	}
	if s.OnlyKind != "" {
		out = append(out, "only-kind")
	}
	return append(out, s.Labels...)
}

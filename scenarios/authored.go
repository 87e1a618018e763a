package scenarios

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Authored are the scenarios written in Go: what would be the same lines again and again in YAML. They are validated by
// the same rules and judged by the same checker.
func Authored() []*scenario.Scenario {
	return []*scenario.Scenario{visibleFailures("conditions"), visibleFailures("healthreports")}
}

// failing is a way for a plugin to fail, and what its node must report.
type failing struct {
	fault  string
	params map[string]any
	status string
	origin string // of the status: docs/contract.md, "Outcome of a probe"
}

func failures() []failing {
	return []failing{
		{"hang", nil, "error", ""},
		{"delay", map[string]any{"by": "2s"}, "error", ""},
		{"grpc-status", map[string]any{"code": "PermissionDenied", "text": "the key policy says no"}, "error", ""},
		{"nil-response", nil, "error", scenario.OriginHouse},
		{"connection-reset", nil, "error", ""},
		{"refuse-connections", nil, "error", ""},
		{"socket-removed", nil, "error", ""},
		{"healthz", map[string]any{"text": "the token expired"}, "unhealthy", ""},
		{"version", map[string]any{"version": "v1beta1"}, "unhealthy", scenario.OriginHouse},
		{"key-id-empty", nil, "unhealthy", scenario.OriginHouse},
		{"key-id-oversized", map[string]any{"size": 4096}, "unhealthy", scenario.OriginHouse},
		{"hostile-text", map[string]any{"kind": "nul", "in": "healthz"}, "unhealthy", ""},
	}
}

// visibleFailures puts one plugin of a single node through every way of failing: each must be on the CR within the
// detection bound, and the node's other plugin must stay healthy throughout.
func visibleFailures(contract string) *scenario.Scenario {
	s := &scenario.Scenario{
		Name:     "every-failure-is-visible-" + contract,
		Title:    "Every way in which a plugin can fail is visible in time and hides no other plugin (" + contract + ").",
		Area:     "plugin",
		Labels:   []string{"slow"},
		Covers:   []string{"S0-05", "S0-08", "S3-14"},
		Topology: scenario.Topology{ControlPlanes: 1, KeyIDs: []string{"2", "1"}},
		Contract: contract,
	}
	plugin := scenario.Selector{Node: "cp-1", KeyID: "1"}
	for _, f := range failures() {
		reported := expect(fmt.Sprintf(`report["cp-1"]["1"].status == %q && report["cp-1"]["2"].status == "healthy" && rollup.degraded.status == "True"`, f.status), "detection")
		reported.Expect.Origin = f.origin
		inject := &scenario.Inject{Plugin: plugin, Fault: f.fault, Params: f.params}
		s.Steps = append(s.Steps,
			scenario.Step{Action: inject},
			reported,
			scenario.Step{Action: &scenario.Release{Plugin: plugin}},
			expect(`report["cp-1"]["1"].status == "healthy"`, "recovery"))
	}
	return s.WithDefaults()
}

func expect(cel, within string) scenario.Step {
	return scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel, Bound: scenario.D(within)}}
}

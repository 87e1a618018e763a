package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

const file = `apiVersion: kmsharness.io/v1alpha1
kind: Scenario
metadata: {name: t, title: It holds., area: plugin}
spec:
  steps:
  - inject: {plugin: {node: cp-2}, method: Status, fault: hang}
  - expect: rollup.degraded.status == "True"
    within: detection
  - parallel:
    - kill: {role: reporter, node: cp-1}
    - wait: 2s
      at: 1s
    - inject: {plugin: {node: cp-3}, method: Status, fault: healthz, text: x, for: 3s}
  - release: {plugin: {node: all}}
  - repeat:
      times: 3
      steps:
      - wait: 2s
  - never: rollup.degraded.status == "Unknown"
    for: 5s
    after: 1s
`

func timing() contract.Timing {
	return contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 900 * time.Millisecond, WriteTimeout: time.Second, AggregatorLatency: time.Second}
}

func rows(t *testing.T) []Row {
	t.Helper()
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parser.Parse("t.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return Timeline(s, timing())
}

// Every step begins when those before it can have ended, and what was done is in force until something ends it.
func TestTimeline(t *testing.T) {
	const s = time.Second
	detection := timing().DetectionBound()
	want := []Row{
		{Step: "steps[0]", Kind: Action, Lasts: detection + 3*s, Times: 1},
		{Step: "steps[1]", Kind: Expect, End: Span{0, detection}, Times: 1},
		{Step: "steps[2]", Kind: Group, Begin: Span{0, detection}, End: Span{3 * s, detection + 3*s}, Times: 1},
		{Step: "steps[2].parallel[0]", Depth: 1, Kind: Action, Begin: Span{0, detection}, End: Span{0, detection}, Lasts: detection + 15*s, Times: 1},
		{Step: "steps[2].parallel[1]", Depth: 1, Kind: Wait, Begin: Span{s, detection + s}, End: Span{3 * s, detection + 3*s}, Times: 1},
		{Step: "steps[2].parallel[2]", Depth: 1, Kind: Action, Begin: Span{0, detection}, End: Span{0, detection}, Lasts: detection + 3*s, Times: 1},
		{Step: "steps[3]", Kind: Action, Begin: Span{3 * s, detection + 3*s}, End: Span{3 * s, detection + 3*s}, Times: 1},
		{Step: "steps[4]", Kind: Group, Begin: Span{3 * s, detection + 3*s}, End: Span{9 * s, detection + 9*s}, Times: 1},
		{Step: "steps[4].repeat.steps[0]", Depth: 1, Kind: Wait, Begin: Span{3 * s, detection + 3*s}, End: Span{5 * s, detection + 5*s}, Times: 3},
		{Step: "steps[5]", Kind: Holds, Begin: Span{10 * s, detection + 10*s}, End: Span{15 * s, detection + 15*s}, Times: 1},
	}
	got := rows(t)
	if len(got) != len(want) {
		t.Fatalf("%d rows, expected %d: %+v", len(got), len(want), got)
	}
	for i, r := range got {
		r.Text = ""
		if r != want[i] {
			t.Errorf("got  %+v\nwant %+v", r, want[i])
		}
	}
}

func TestWords(t *testing.T) {
	var text strings.Builder
	if err := Write(&text, rows(t)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"inject plugin cp-2/* fault=hang method=Status", "at the same time:", "  kill process reporter/cp-1", "for=3s method=Status text=x",
		"release plugin all", "3 times:", "for 5s never: rollup.degraded", "3s…7s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("expected %q in\n%s", want, text.String())
		}
	}
}

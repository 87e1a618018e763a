package scenarios

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// Every scenario of the catalogue survives being written and read again.
func TestEncode(t *testing.T) {
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load("catalogue")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parser.Parse(filepath.Base(s.File), data)
		if err != nil {
			t.Errorf("%v\n%s", err, data)
			continue
		}
		if want, got := unplaced(s), unplaced(again); !reflect.DeepEqual(want, got) {
			t.Errorf("%s is\n%+v, expected\n%+v\n%s", s.Name, got, want, data)
		}
	}
}

// unplaced is a scenario without what is only about its file.
func unplaced(s *scenario.Scenario) scenario.Scenario {
	out := *s
	out.File, out.Steps = "", unplacedSteps(s.Steps)
	return out
}

func unplacedSteps(steps []scenario.Step) []scenario.Step {
	var out []scenario.Step
	for _, s := range steps {
		s.Pos, s.At, s.After, s.Wait = scenario.Position{}, scenario.D(s.At.Text), scenario.D(s.After.Text), scenario.D(s.Wait.Text)
		if s.Expect != nil {
			e := *s.Expect
			e.Bound = scenario.D(e.Bound.Text)
			s.Expect = &e
		}
		s.Parallel = unplacedSteps(s.Parallel)
		if s.Repeat != nil {
			s.Repeat = &scenario.Repeat{Times: s.Repeat.Times, Steps: unplacedSteps(s.Repeat.Steps)}
		}
		out = append(out, s)
	}
	return out
}

package fault_test

import (
	"fmt"

	clocktesting "k8s.io/utils/clock/testing"

	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
)

// A fault is one value: name, parameters, and what it does to the plan of a call. One that the catalogue does not have is injected like any other.
func ExampleDefinition_New() {
	shout := fault.Definition{
		Name: "healthz-shout", Scope: fault.ScopeCall, Methods: []fault.Method{fault.Status}, Default: []fault.Method{fault.Status},
		Summary: "Status answers OK in capital letters.",
		Shape: func(s *fault.Strike) {
			s.Plan.Edits = append(s.Plan.Edits, fault.Edit{Field: fault.FieldHealthz, Value: "OK"})
		},
	}
	f, err := shout.New(map[string]any{"count": 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	program := fault.NewProgram(clocktesting.NewFakePassiveClock(time.Unix(0, 0)), 1) // an Option of fakeplugin/server.New
	if _, err := program.Inject(f); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		plan := program.Plan(fault.Status)
		fmt.Println(plan.Faults, len(plan.Edits))
	}
	_, err = shout.New(map[string]any{"volume": 11})
	fmt.Println(err)
	// Output:
	// [healthz-shout] 1
	// [] 0
	// fault healthz-shout: there is no parameter "volume" (it has: for, method, count, probability)
}

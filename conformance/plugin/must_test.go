package plugin

import (
	"context"
	"errors"
	"testing"

	"github.com/kmsharness/kmsharness/conformance"
)

// TestCaught: must ends what caught runs by its error, and any other panic goes on.
func TestCaught(t *testing.T) {
	broken := errors.New("broken")
	for want, f := range map[error]func() error{
		nil:    func() error { return nil },
		broken: func() error { return broken },
		errOther: func() error {
			must(nil)
			_ = need(1, errOther)
			return broken
		},
	} {
		if err := caught(f); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	defer func() {
		if end := recover(); end != "a mistake of the check" {
			t.Errorf("%v, want that the panic goes on", end)
		}
	}()
	_ = caught(func() error { panic("a mistake of the check") })
}

// TestMustEndsACheck with the same result as its error.
func TestMustEndsACheck(t *testing.T) {
	endpoint, _ := serve(t, ok)
	got := outcomes(t, endpoint, Options{Checks: []Check{
		check("A", nil, func(context.Context, *Plugin) error {
			must(found("Status", "wrong", "right"))
			return nil
		}),
		check("B", nil, func(context.Context, *Plugin) error { return need[error](nil, unsupported{"nothing to judge"}) }),
		check("C", nil, pass),
	}})
	if got["A"].Outcome != conformance.Failed || got["A"].Evidence.Response != "wrong" {
		t.Errorf("a finding: %+v", got["A"])
	}
	if got["B"].Outcome != conformance.NotSupported || got["C"].Outcome != conformance.Passed {
		t.Errorf("nothing to judge, and what follows: %+v, %+v", got["B"], got["C"])
	}
}

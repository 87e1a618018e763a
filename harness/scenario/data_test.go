package scenario_test

import (
	"bytes"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestLoadValueHasNothingOfTheName(t *testing.T) {
	first := scenario.LoadValue("load-1", 1)
	if bytes.Contains(first, []byte("load")) {
		t.Errorf("the value %q names its object", first)
	}
	if bytes.Equal(first, scenario.LoadValue("load-1", 2)) || bytes.Equal(first, scenario.LoadValue("load-2", 1)) {
		t.Error("two writes have one value")
	}
}

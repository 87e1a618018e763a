package cli

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/scenarios"
)

func TestCheckLabels(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	for filter, want := range map[string]string{
		"": "", "area:plugin && !slow": "", "AREA:plugin": "", "(slow || name:plugin-hangs),form": "", "/^name:plugin-/ && topology:ha": "", "area: containsAny {plugin, kms, sno}": "", "area: isSubsetOf plugin": "",
		"area:plugin &&":                   `--labels "area:plugin &&": column 15: Unexpected EOF`,
		"(slow || form":                    `column 1: Mismatched '('`,
		"area:plugin slow )":               "column 18: Mismatched ')'",
		"name:/[/":                         "column",
		"area:plugn":                       `no scenario has the label "area:plugn", did you mean "area:plugin"?`,
		"!slwo && area:plugin":             `no scenario has the label "slwo", did you mean "slow"?`,
		"area:plugin && area:network":      "expected a filter that selects a scenario",
		"/^nothing/":                       "expected a filter that selects a scenario",
		"area: containsAny {plugn, plugi}": "expected a filter that selects a scenario",
	} {
		_, err := checkLabels(filter, all)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, want %q", filter, err, want)
		}
	}
}

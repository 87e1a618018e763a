package scenario_test

import (
	"net/http"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// TestAttemptIsJudged: RBAC answers 403, an admission policy 422.
func TestAttemptIsJudged(t *testing.T) {
	for _, test := range []struct {
		expect string
		code   int
		ok     bool
	}{
		{"denied", http.StatusForbidden, true}, {"denied", http.StatusUnprocessableEntity, true}, {"denied", http.StatusOK, false},
		{"", http.StatusForbidden, true}, {"allowed", http.StatusOK, true}, {"allowed", http.StatusForbidden, false},
		{"denied", http.StatusInternalServerError, false},
	} {
		a := &scenario.Attempt{Expect: test.expect}
		if err := a.Judge("get secrets", test.code, ""); (err == nil) != test.ok {
			t.Errorf("expect %q, code %d: %v", test.expect, test.code, err)
		}
	}
}

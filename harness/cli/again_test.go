package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
)

// TestToJudgeAgain: what is inconclusive, unless nothing may be begun any more.
func TestToJudgeAgain(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx      context.Context
		statuses []result.Status
		failFast bool
		notAfter time.Time
		want     string
	}{
		"two":                     {t.Context(), []result.Status{result.Inconclusive, result.Passed, result.Inconclusive}, false, time.Time{}, "a c"},
		"none":                    {t.Context(), []result.Status{result.Passed, result.Failed, result.Interrupted, result.CouldNotRun}, false, time.Time{}, ""},
		"after an interrupt":      {ended, []result.Status{result.Inconclusive}, false, time.Time{}, ""},
		"there is time":           {t.Context(), []result.Status{result.Inconclusive}, false, time.Now().Add(time.Hour), "a"},
		"no time is left":         {t.Context(), []result.Status{result.Inconclusive}, false, time.Now().Add(-time.Hour), ""},
		"fail-fast, and none has": {t.Context(), []result.Status{result.Inconclusive, result.Passed}, true, time.Time{}, "a"},
		"fail-fast ended the run": {t.Context(), []result.Status{result.Inconclusive, result.Failed}, true, time.Time{}, ""},
		"a failure, no fail-fast": {t.Context(), []result.Status{result.Inconclusive, result.Failed}, false, time.Time{}, "a"},
	} {
		out := t.TempDir()
		for i, status := range c.statuses {
			r := result.Result{Scenario: string(rune('a' + i)), Status: status}
			if err := r.Save(filepath.Join(out, r.Scenario)); err != nil {
				t.Fatal(err)
			}
		}
		var w bytes.Buffer
		names, err := toJudgeAgain(c.ctx, &w, out, c.failFast, c.notAfter)
		if err != nil || !slices.Equal(names, strings.Fields(c.want)) || (w.Len() > 0) != (len(names) > 0) {
			t.Errorf("%s: %v, %v, want %s: %s", name, names, err, c.want, w.String())
		}
	}
	if got := labelsOf([]string{"a", "b"}); got != "name:a || name:b" {
		t.Error(got)
	}
}

package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/result"
)

func TestWaitsText(t *testing.T) {
	s := summary(result.Passed, result.Failed, result.NotSupported)
	if text := s.WaitsText(); text != "" {
		t.Errorf("without waits: %q", text)
	}
	var silent strings.Builder
	if err := s.WriteText(&silent); err != nil || strings.Contains(silent.String(), "waited") {
		t.Errorf("%v\n%s", err, silent.String())
	}
	s.Results[0].Waited(2*time.Second, 3, nil)
	if text := s.WaitsText(); text != "waited longest for: preparation of 3 nodes 2s (a)\npreparation: 2s of 12.3s" {
		t.Error(text)
	}
	s.Results[1].Waited(9*time.Second, 1, nil)
	for i := range 6 {
		s.Results[1].Waits = append(s.Results[1].Waits, result.Wait{For: "steps\x1b[0]", Took: time.Duration(10+i) * time.Second})
	}
	dir := t.TempDir()
	for _, r := range s.Results {
		if err := r.Save(dir + "/" + r.Scenario); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := report.Collect(dir)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := merged.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(text.String(), "\nwaited longest for: ")
	longest, rest, _ := strings.Cut(block, "\n")
	if strings.Count(longest, ";") != 4 || !strings.HasSuffix(longest, "11s (b)") || strings.ContainsRune(block, 0x1b) ||
		!strings.HasPrefix(rest, "preparation: 11s of 24.7s, added up over 2 scenarios, which may run side by side\n\ne2e: ") {
		t.Error(text.String())
	}
	if !strings.Contains(merged.Markdown(""), "\nwaited longest for: ") {
		t.Error(merged.Markdown(""))
	}
}

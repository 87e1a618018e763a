package scenarios_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// mostGuideLines is what the guide promises a new failure to take.
const mostGuideLines = 15

var (
	wholeFile    = regexp.MustCompile("(?s)```yaml\n((?:# yaml-language-server[^\n]*\n)?apiVersion: .*?)```")
	nameInFile   = regexp.MustCompile(`name: ([a-z0-9-]+)`)
	firstComment = regexp.MustCompile(`^#[^\n]*\n`)
)

// The scenarios that the authoring guide shows can be copied as they are: they are valid, and pass. The first is as short as it says.
func TestAuthoringGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/authoring.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	shown := wholeFile.FindAllSubmatch(guide, -1)
	if len(shown) == 0 {
		t.Fatal("the guide shows no whole scenario")
	}
	for i, block := range shown {
		text := string(block[1])
		name := nameInFile.FindStringSubmatch(text)[1]
		if lines := strings.Count(firstComment.ReplaceAllString(text, ""), "\n"); i == 0 && lines > mostGuideLines {
			t.Errorf("%s has %d lines, the guide promises %d", name, lines, mostGuideLines)
		}
		s, err := parser.Parse(name+".yaml", []byte(text))
		if err != nil {
			t.Errorf("the guide's %s: %v", name, err)
			continue
		}
		b := virtual.New(virtual.Options{})
		if len(b.Unsupported(s)) > 0 {
			continue // shown for another backend
		}
		r := engine.Execute(t.Context(), b, s, engine.Execution{Out: t.TempDir(), Artifacts: engine.ArtifactsNever, Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1, Reproduce: "a test"}})
		if r.Status != result.Passed {
			t.Errorf("the guide's %s: %s", name, r.Text())
		}
	}
}

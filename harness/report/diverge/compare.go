package diverge

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Verdict on two histories.
type Verdict string

const (
	Equal     Verdict = "equal"      // event by event
	TimesOnly Verdict = "times only" // the same was said in the same order, at other times or more often
	Different Verdict = "different"
)

// Result of a comparison.
type Result struct {
	Verdict Verdict `json:"verdict"`
	// First is where they part first, Others are the names of further strands that differ.
	First  *Divergence `json:"first,omitempty"`
	Others []string    `json:"others,omitempty"`
}

// Divergence is where one strand parts. Common is what both said last; Then what each said next, nil if nothing.
type Divergence struct {
	Strand string     `json:"strand"`
	Common [2]*Saying `json:"common"`
	Then   [2]*Saying `json:"then"`
	// During is the last step or expectation that had begun on each side.
	During [2]string `json:"during"`
	at     time.Duration
}

type Saying struct {
	Event  history.Event `json:"event"`
	Offset time.Duration `json:"offset"` // since the healthy control began
	Text   string        `json:"text"`
}

// Compare is a pure function of two histories.
func Compare(a, b []history.Event) Result {
	if slices.EqualFunc(a, b, identical) {
		return Result{Verdict: Equal}
	}
	out := Result{Verdict: TimesOnly}
	strands := [2]map[string][]Saying{strandsOf(a), strandsOf(b)}
	var all []*Divergence
	names := slices.AppendSeq(slices.Collect(maps.Keys(strands[0])), maps.Keys(strands[1]))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if d := part(name, strands[0][name], strands[1][name]); d != nil {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return out
	}
	slices.SortStableFunc(all, func(x, y *Divergence) int { return int(x.at - y.at) })
	out.Verdict, out.First = Different, all[0]
	for side := range strands {
		out.First.During[side] = during(strands[side][strandSteps], all[0].at)
	}
	for _, d := range all[1:] {
		out.Others = append(out.Others, d.Strand)
	}
	return out
}

// identical compares two events as a history has them.
func identical(a, b history.Event) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// part finds where a strand parts, and when: at the earlier of what either said next; nil if nowhere.
func part(name string, a, b []Saying) *Divergence {
	n := 0
	for n < len(a) && n < len(b) && a[n].Text == b[n].Text {
		n++
	}
	if n == len(a) && n == len(b) {
		return nil
	}
	d := &Divergence{Strand: name}
	for side, list := range [2][]Saying{a, b} {
		if n > 0 {
			d.Common[side] = &list[n-1]
		}
		if n < len(list) {
			d.Then[side] = &list[n]
			if d.at == 0 || list[n].Offset < d.at {
				d.at = list[n].Offset
			}
		}
	}
	return d
}

// during is the last thing that the scenario did before an instant.
func during(steps []Saying, at time.Duration) string {
	text := ""
	for _, s := range steps {
		if s.Offset <= at {
			text = s.Text
		}
	}
	return text
}

//go:embed print.tmpl
var printText string // go:embed needs a variable

// Cells of the table are separated by tabs.
var printed = template.Must(template.New("").Funcs(template.FuncMap{
	"safe": func(text string) string { return contract.SafeText(text, 400) },
	"headline": func(events []history.Event) string {
		if len(events) == 0 || events[0].Run == nil {
			return "no heading"
		}
		run := events[0].Run
		return fmt.Sprintf("%s on %s, seed %d, %d events", run.Scenario, run.Backend, run.Seed, len(events))
	},
}).Parse(printText))

// Print writes one picture: what both said last, then both sides.
func (r Result) Print(w io.Writer, names [2]string, sides [2][]history.Event) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	err := printed.ExecuteTemplate(columns, "comparison", struct {
		Result
		Names [2]string
		Sides [2][]history.Event
	}{r, names, sides})
	if err != nil {
		return err
	}
	return columns.Flush()
}

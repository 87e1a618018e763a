package trace

import (
	"cmp"
	_ "embed"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/text"
)

// maxListed bounds what is listed below one operation, and of one kind; --json has all.
const maxListed = 8

// maxText bounds a text that came from a plugin or a log.
const maxText = 300

//go:embed print.tmpl
var printText string // go:embed needs a variable

var printed = template.Must(template.New("").Funcs(template.FuncMap{
	"clock":  func(t time.Time) string { return t.UTC().Format("15:04:05.000000") },
	"count":  text.Count,
	"dash":   orDash,
	"listed": func(i int) bool { return i < maxListed },
	"more":   func(n int) int { return max(n-maxListed, 0) },
	"outcome": func(o Operation) string {
		if o.OK {
			return "ok"
		}
		return "FAILED (" + safe(o.Error) + ")"
	},
	"place": func(o Operation) string {
		if o.KeyID == "" {
			return orDash(o.Node)
		}
		return o.Node + "/" + o.KeyID
	},
	"safe":  safe,
	"short": text.Short,
	"since": func(began, t time.Time) string { return text.Short(t.Sub(began)) },
	"took": func(o Operation, party string) string {
		i := slices.IndexFunc(o.Hops, func(h Hop) bool { return h.Party == party })
		if i < 0 {
			return "-"
		}
		return text.Short(o.Hops[i].Took)
	},
	"uid": func(uid string) string { return safe(cmp.Or(uid, "without a uid")) },
}).Parse(printText))

func safe(s string) string { return contract.SafeText(s, maxText) }

func orDash(s string) string { return safe(cmp.Or(s, "-")) }

// write prints a value by one of the templates.
func write(w io.Writer, template string, value any) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if err := printed.ExecuteTemplate(columns, template, value); err != nil {
		return err
	}
	return columns.Flush()
}

func PrintChains(w io.Writer, ops []Operation) error { return write(w, "chains", ops) }

// PrintTable prints operations, one to a line, at most limit of them; 0 is all.
func PrintTable(w io.Writer, ops []Operation, limit int) error {
	shown := ops
	if limit > 0 {
		shown = ops[:min(limit, len(ops))]
	}
	return write(w, "table", struct {
		Shown []Operation
		More  int
	}{shown, len(ops) - len(shown)})
}

// PrintSummary prints how much could be joined.
func (t *Trace) PrintSummary(w io.Writer) error { return write(w, "summary", t) }

// Complete is how many operations every party has.
func (t *Trace) Complete() int { return len(t.Operations) - len(t.Uncorrelated()) }

// PrintUncorrelated prints what could not be joined, by reason, and what was no operation.
func (t *Trace) PrintUncorrelated(w io.Writer) error { return write(w, "uncorrelated", t) }

// notJoined are operations with the same gap.
type notJoined struct {
	Gap        // without its text
	Operations []gapOf
}

type gapOf struct {
	Operation
	Text string
}

// NotJoined are the operations that not every party has, by what is missing, what nothing explains first.
func (t *Trace) NotJoined() (all []notJoined) {
	byReason := map[Gap][]gapOf{}
	for _, o := range t.Uncorrelated() {
		for _, g := range o.Gaps {
			x := gapOf{o, g.Text}
			if by := t.likely(o); o.UID == "" && by != "" {
				x.Text += "; by its time it is a part of " + by
			}
			kind := Gap{Party: g.Party, Reason: g.Reason}
			byReason[kind] = append(byReason[kind], x)
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(byReason), func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.unexplained(), a.unexplained()), cmp.Compare(rank(a.Party), rank(b.Party)), strings.Compare(string(a.Reason), string(b.Reason)))
	}) {
		all = append(all, notJoined{kind, byReason[kind]})
	}
	return all
}

// WithoutOperation are requests that were no envelope operation, by the reason.
func (t *Trace) WithoutOperation() map[string][]Request {
	byWhy := map[string][]Request{}
	for _, r := range t.Requests {
		if r.Why != "" {
			byWhy[r.Why] = append(byWhy[r.Why], r)
		}
	}
	return byWhy
}

// Print prints an object's story, without the writes of others.
func (s Story) Print(w io.Writer) error {
	s.Operations = slices.Clone(s.Operations)
	for i, o := range s.Operations {
		s.Operations[i].Sealed = slices.DeleteFunc(slices.Clone(o.Sealed), func(u Use) bool { return u.Object != s.Object.Name })
	}
	return write(w, "story", s)
}

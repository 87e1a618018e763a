package trace

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/internal/text"
)

// PrintTable prints operations, one to a line, at most limit of them; 0 is all.
func PrintTable(w io.Writer, ops []Operation, limit int) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TOOK\tPLUGIN\tKMS\tOP\tUID\tNODE\tKEK\tOBJECTS\tAT\tOUTCOME")
	shown := ops
	if limit > 0 {
		shown = ops[:min(limit, len(ops))]
	}
	for _, o := range shown {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", text.Short(o.Took), tookAt(o, Plugin), tookAt(o, RemoteKMS), o.Op, uidText(o.UID), place(o),
			orDash(o.KEKID), objectsText(o), o.Began.UTC().Format(clock), outcome(o)+gapsText(o))
	}
	if n := len(ops) - len(shown); n > 0 {
		fmt.Fprintf(table, "and %d more\n", n)
	}
	return table.Flush()
}

func tookAt(o Operation, party string) string {
	for _, h := range o.Hops {
		if h.Party == party {
			return text.Short(h.Took)
		}
	}
	return "-"
}

func objectsText(o Operation) string {
	if o.Op == Encrypt {
		return text.Count(len(o.Sealed), "write")
	}
	return orDash(o.Object)
}

func gapsText(o Operation) string {
	var out []string
	for _, g := range o.Gaps {
		out = append(out, g.Party+" "+string(g.Reason))
	}
	if len(out) == 0 {
		return ""
	}
	return ", not joined: " + strings.Join(out, ", ")
}

// PrintSummary prints how much could be joined.
func (t *Trace) PrintSummary(w io.Writer) error {
	all, partly := 0, t.Uncorrelated()
	for _, o := range t.Operations {
		if len(o.Gaps) == 0 {
			all++
		}
	}
	_, err := fmt.Fprintf(w, "%s on %s: %s, %d followed through all parties, %d not; %s for %s, %d of them without an envelope operation\n", orDash(t.Scenario), orDash(t.Backend),
		text.Count(len(t.Operations), "envelope operation"), all, len(partly), text.Count(len(t.Requests), "request"), text.Count(len(t.Objects), "object"), len(t.Cached()))
	return err
}

// PrintUncorrelated prints what could not be joined, by reason, and what was no operation.
func (t *Trace) PrintUncorrelated(w io.Writer) error {
	p := &printer{w: w}
	ops := t.Uncorrelated()
	if len(ops) == 0 {
		p.line("Every envelope operation was followed through all parties.")
	}
	byReason := map[Gap][]Operation{}
	for _, o := range ops {
		for _, g := range o.Gaps {
			kind := Gap{Party: g.Party, Reason: g.Reason}
			byReason[kind] = append(byReason[kind], o)
		}
	}
	kinds := slices.SortedFunc(maps.Keys(byReason), func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.unexplained(), a.unexplained()), cmp.Compare(rank(a.Party), rank(b.Party)), strings.Compare(string(a.Reason), string(b.Reason)))
	})
	for _, kind := range kinds {
		p.reason(t, kind, byReason[kind])
	}
	p.cached(t)
	return p.err
}

func (p *printer) reason(t *Trace, kind Gap, ops []Operation) {
	p.line("%s: %s, %s", kind.Party, kind.Reason, text.Count(len(ops), "operation"))
	list(p, "  ", ops, func(o Operation) {
		text := ""
		for _, g := range o.Gaps {
			if g.Party == kind.Party && g.Reason == kind.Reason {
				text = g.Text
			}
		}
		if by := t.likely(o); o.UID == "" && by != "" {
			text += "; by its time it is a part of " + by
		}
		p.line("  %s  %s %s %s: %s", o.Began.UTC().Format(clock), o.Op, place(o), uidText(o.UID), safe(text))
	})
}

// cached tells of requests that were no envelope operation.
func (p *printer) cached(t *Trace) {
	byWhy := map[string][]Request{}
	for _, r := range t.Requests {
		if r.Why != "" {
			byWhy[r.Why] = append(byWhy[r.Why], r)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(byWhy)) {
		p.line("%s, %s", why, text.Count(len(byWhy[why]), "request"))
		list(p, "  ", byWhy[why], p.request)
	}
}

func (p *printer) request(r Request) {
	keys := ""
	if r.DEK != "" {
		keys = ", with the key of encrypt " + r.DEK
	}
	for _, uid := range r.Operations {
		keys += ", decrypt " + uid
	}
	p.line("  %s  %s %s at %s: %d in %s%s", r.Received.UTC().Format(clock), r.Verb, safe(r.Object), safe(r.Node), r.Code, text.Short(r.Took), keys)
}

// Print prints an object's story.
func (s Story) Print(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s", safe(s.Object.Name))
	for _, x := range s.Object.Stored {
		p.stored(x)
	}
	if len(s.Requests) > 0 {
		p.line("requests")
	}
	for _, r := range s.Requests {
		p.request(r)
	}
	for _, o := range s.Operations {
		p.line("")
		p.chain(s.narrowed(o))
	}
	return p.err
}

// narrowed leaves only this object's writes.
func (s Story) narrowed(o Operation) Operation {
	o.Sealed = slices.DeleteFunc(slices.Clone(o.Sealed), func(u Use) bool { return u.Object != s.Object.Name })
	return o
}

func (p *printer) stored(x Stored) {
	p.line("in etcd at %s: provider %s, kekID %s, sealed key %s", x.At.UTC().Format(clock), safe(x.Provider), orDash(x.KEKID), orDash(x.Source))
	switch {
	case x.Encrypt != "":
		p.line("  its key was sealed by encrypt %s (%s)", safe(x.Encrypt), x.By)
	case x.By != "":
		p.line("  its key was sealed by an encrypt (%s)", x.By)
	}
	if x.Why != "" {
		p.line("  %s", safe(x.Why))
	}
}

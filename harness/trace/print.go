package trace

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/text"
)

// maxListed bounds what is listed below one operation, and of one kind; --json has all.
const maxListed = 8

const clock = "15:04:05.000000"

// maxText bounds a text that came from a plugin or a log.
const maxText = 300

// PrintChains prints operations, each as a chain with its hops.
func PrintChains(w io.Writer, ops []Operation) error {
	p := &printer{w: w}
	for i, o := range ops {
		if i > 0 {
			p.line("")
		}
		p.chain(o)
	}
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) chain(o Operation) {
	p.line("%s %s  %s  %s  %s in %s", o.Op, uidText(o.UID), place(o), orDash(o.KEKID), outcome(o), text.Short(o.Took))
	if o.Object != "" {
		p.line("│ for %s", safe(o.Object))
	}
	if o.Background {
		p.line("│ in the background: the API server's cache of objects read it")
	}
	if o.Request != "" {
		p.line("│ in API request %s", safe(o.Request))
	}
	p.hops(o)
	for _, g := range o.Gaps {
		p.line("├ ✗ %-14s %s: %s", g.Party, g.Reason, safe(g.Text))
	}
	p.sealed(o)
}

func (p *printer) hops(o Operation) {
	table := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, h := range o.Hops {
		took := ""
		if h.Took > 0 {
			took = "in " + text.Short(h.Took)
		}
		fmt.Fprintf(table, "├ %s\t+%s\t%s\t%s\t%s\n", h.Began.UTC().Format(clock), text.Short(h.Began.Sub(o.Began)), h.Party, safe(h.Text), took)
	}
	if err := table.Flush(); p.err == nil {
		p.err = err
	}
}

func (p *printer) sealed(o Operation) {
	switch {
	case o.Op != Encrypt:
		p.line("└ key %s", orDash(o.Source))
		return
	case len(o.Sealed) == 0:
		p.line("└ key %s, of no write in this history", orDash(o.Source))
		return
	}
	p.line("└ key %s, of %s", orDash(o.Source), text.Count(len(o.Sealed), "write"))
	list(p, "    ", o.Sealed, func(u Use) {
		p.line("    %s  +%s  %s %s", u.At.UTC().Format(clock), text.Short(u.At.Sub(o.Began)), orDash(u.Verb), safe(u.Object))
	})
}

// list prints the first of all, and how many more there are.
func list[E any](p *printer, indent string, all []E, print func(E)) {
	for _, e := range all[:min(maxListed, len(all))] {
		print(e)
	}
	if n := len(all) - maxListed; n > 0 {
		p.line("%sand %d more", indent, n)
	}
}

func place(o Operation) string {
	if o.KeyID == "" {
		return orDash(o.Node)
	}
	return o.Node + "/" + o.KeyID
}

func outcome(o Operation) string {
	if o.OK {
		return "ok"
	}
	return "FAILED (" + safe(o.Error) + ")"
}

func uidText(uid string) string {
	if uid == "" {
		return "without a uid"
	}
	return safe(uid)
}

func safe(s string) string { return contract.SafeText(s, maxText) }

func orDash(s string) string { return safe(cmp.Or(s, "-")) }

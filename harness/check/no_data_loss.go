package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func noDataLoss() Invariant {
	return Invariant{
		ID: "NO-DATA-LOSS",
		Statement: "every object written during a run reads back unchanged at its end, and is stored encrypted by the key that the configuration named " +
			"when it was written; no object lies under a key that was removed",
		Source: "invariants, NO-DATA-LOSS",
		Judge:  judgeNoDataLoss,
	}
}

// fate is what became of one object.
type fate struct {
	seq      int64
	at       time.Time // of the last successful write
	possible []string  // digests that it may have: the last successful write's and those of failed ones since
	want     string    // provider
	read     *history.Data
	readSeq  int64
	readAt   time.Time
}

func judgeNoDataLoss(v *Facts) (f Finding) {
	fates := map[string]*fate{}
	var lastRead time.Time
	for n := range v.events {
		e := &v.events[n]
		if e.Kind != history.KindData {
			continue
		}
		d, x := e.Data, fates[e.Data.Object]
		switch {
		case d.Op == history.DataWritten && x == nil:
			fates[d.Object] = &fate{seq: e.Seq, at: e.At, possible: []string{d.Digest}, want: d.Want}
			if !d.OK {
				fates[d.Object].seq = 0 // perhaps it never came to be
			}
		case d.Op == history.DataWritten && d.OK:
			*x = fate{seq: e.Seq, at: e.At, possible: []string{d.Digest}, want: d.Want}
		case d.Op == history.DataWritten:
			x.possible = append(x.possible, d.Digest)
		case x == nil:
			continue // not written in this run
		case d.Op == history.DataRead:
			lastRead, x.read, x.readSeq, x.readAt = e.At, d, e.Seq, e.At
			x.judgeRead(&f, *e)
		case d.Op == history.DataRaw:
			x.judgeRaw(&f, *e)
		}
	}
	for _, name := range sortedKeys(fates) {
		fates[name].judgeEnd(&f, name, lastRead, deletedKEK(v))
	}
	judgeInventory(v, &f)
	return f
}

// judgeRead: a read may fail in a fault, but it never gives something else.
func (x *fate) judgeRead(f *Finding, e history.Event) {
	d := e.Data
	f.JudgedAt(e.At, e.At)
	if d.OK && !slices.Contains(x.possible, d.Digest) {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Node: d.Node, Seen: d.Object + " read back as " + quoted(d.Digest), Allowed: "as written: " + quoted(joined(x.possible, " or ")) + " (event " + number(x.seq) + ")"})
	}
}

func (x *fate) judgeRaw(f *Finding, e history.Event) {
	d := e.Data
	want := x.want
	if d.Want != "" {
		want = d.Want
	}
	if want == "" || !d.OK {
		return
	}
	f.JudgedAt(e.At, e.At)
	if d.Provider != want {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: d.Object + " is stored by provider " + quoted(d.Provider), Allowed: "provider " + quoted(want) + ", which the configuration named when it was written"})
	}
}

// judgeEnd: where objects were read back after this one was written, it was too, and well, unless its KEK was deleted.
func (x *fate) judgeEnd(f *Finding, name string, lastRead, deletedKEK time.Time) {
	if x.seq == 0 || !lastRead.After(x.at) || deletedKEK.After(x.at) {
		return
	}
	f.JudgedAt(x.at, lastRead)
	switch {
	case x.read == nil:
		f.Violate(Violation{At: lastRead, Seq: x.seq, Seen: name + " was written and not read back, although others were", Allowed: "every object reads back at the end"})
	case !x.read.OK:
		f.Violate(Violation{At: x.readAt, Seq: x.readSeq, Node: x.read.Node, Seen: name + " does not read back: " + quoted(x.read.Error), Allowed: "its last read succeeds"})
	}
}

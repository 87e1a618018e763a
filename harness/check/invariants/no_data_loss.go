package invariants

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// fate is what became of one object. Objects are compared by digests of their values, so that no history holds a value.
type fate struct {
	seq      int64
	at       time.Time // of the last successful write
	possible []string  // digests that it may have: the last successful write's and those of failed ones since
	want     string    // provider
	read     *history.Event
}

// Only the harness's own objects are judged, as it knows what it wrote: by reads through the API, by the raw bytes in
// etcd (their provider is in the prefix "k8s:enc:…"), and by the inventory of all keys.
func judgeNoDataLoss(v *facts.Facts) (f Finding) {
	fates := map[string]*fate{}
	var lastRead time.Time
	for e := range v.Each(history.KindData) {
		d, x := e.Data, fates[e.Data.Object]
		switch {
		case d.Op == history.DataRestored && d.Digest == "":
			delete(fates, d.Object)
		case d.Op == history.DataRestored:
			fates[d.Object] = &fate{seq: e.Seq, at: e.At, possible: []string{d.Digest}}
		case d.Op == history.DataWritten && (x == nil || d.OK):
			x = &fate{seq: e.Seq, at: e.At, possible: []string{d.Digest}, want: d.Want}
			if !d.OK {
				x.seq = 0 // perhaps it never came to be
			}
			fates[d.Object] = x
		case d.Op == history.DataWritten:
			x.possible = append(x.possible, d.Digest)
		case x == nil:
			continue // not written in this run
		case d.Op == history.DataRead:
			lastRead, x.read = e.At, e
			x.judgeRead(&f, e)
		case d.Op == history.DataRaw:
			x.judgeRaw(&f, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fates)) {
		fates[name].judgeEnd(&f, name, lastRead, deletedKEK(v))
	}
	judgeInventory(v, &f)
	return f
}

// deletedKEK returns the last instant at which a scenario deleted a KEK at the remote KMS: what was encrypted under it
// is lost on purpose.
func deletedKEK(v *facts.Facts) (at time.Time) {
	for _, a := range v.Actions.All {
		if a.Verb == "kms" && (a.Param("op") == "delete" || a.Param("op") == "recreate") {
			at = span.Latest(at, a.To)
		}
	}
	return at
}

// judgeRead: a read may fail in a fault, but it never gives something else.
func (x *fate) judgeRead(f *Finding, e *history.Event) {
	d := e.Data
	f.JudgedAt(e.At, e.At)
	if d.OK && !slices.Contains(x.possible, d.Digest) {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Node: d.Node, Seen: d.Object + " read back as " + text.Quoted(d.Digest), Allowed: fmt.Sprintf("as written: %s (event %d)", text.Quoted(strings.Join(x.possible, " or ")), x.seq)})
	}
}

func (x *fate) judgeRaw(f *Finding, e *history.Event) {
	d := e.Data
	want := cmp.Or(d.Want, x.want)
	if want == "" || !d.OK {
		return
	}
	f.JudgedAt(e.At, e.At)
	if d.Provider != want {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: d.Object + " is stored by provider " + text.Quoted(d.Provider), Allowed: "provider " + text.Quoted(want) + ", which the configuration named when it was written"})
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
	case !x.read.Data.OK:
		f.Violate(Violation{At: x.read.At, Seq: x.read.Seq, Node: x.read.Data.Node, Seen: name + " does not read back: " + text.Quoted(x.read.Data.Error), Allowed: "its last read succeeds"})
	}
}

// judgeInventory judges where all encrypted objects lie, those of others included: no object lies under a key that some
// API server does not have, or that the operator has deleted, and none was left out when every object was written anew.
func judgeInventory(v *facts.Facts, f *Finding) {
	k := newKeepers(v)
	for e := range v.Each(keeperKinds(history.KindStorageInventory)...) {
		k.apply(e)
		if e.Kind != history.KindStorageInventory {
			continue
		}
		f.JudgedAt(e.At, e.At)
		for _, u := range e.StorageInventory.Under {
			judgeUnder(k, f, e, u)
		}
	}
}

func judgeUnder(k *keepers, f *Finding, e *history.Event, u history.Under) {
	lies := fmt.Sprintf("%d objects lie under %s, such as %s", u.Count, u.Provider, u.Example)
	for _, n := range k.nodes() {
		if !slices.Contains(k.configured[n], u.Provider) {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: n, Seen: lies, Allowed: "the providers that the API server of " + n + " was told: " + strings.Join(k.configured[n], ", ")})
			return
		}
	}
	if _, id, numbered := strings.Cut(u.Provider, "-"); numbered && k.keys != nil && !k.keys[id] {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: lies, Allowed: "the keys that the operator has kept: " + strings.Join(slices.Sorted(maps.Keys(k.keys)), ", ")})
		return
	}
	if k.migrated != "" && u.Provider != k.migrated {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: lies, Allowed: k.migrated + " alone: every object was said to be written anew"})
	}
}

package trace

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// explain finds who does not have the operation, and why.
func (w *world) explain(o *Operation) {
	has := map[string]int{}
	for _, h := range o.Hops {
		has[h.Party]++
	}
	switch {
	case o.UID == "":
		o.gap(o.Hops[0].Party, NoUID, fmt.Sprintf("it carried no uid at the %s: an older API server, or a party that does not pass it on", o.Hops[0].Party))
		return
	case has[Plugin] > 1 || has[RemoteKMS] > 1 || has[APIServer] > 1:
		o.gap(o.Hops[0].Party, UIDReused, fmt.Sprintf("more than one operation has this uid: %d lines of the API server, %d calls, %d records of the KMS", has[APIServer], has[Plugin], has[RemoteKMS]))
	}
	if has[APIServer] == 0 {
		w.noLine(o)
	}
	if has[Plugin] == 0 {
		w.noCall(o)
	}
	if has[RemoteKMS] == 0 && has[Plugin] > 0 {
		w.noRecord(o)
	}
}

func (o *Operation) gap(party string, r Reason, text string) {
	o.Gaps = append(o.Gaps, Gap{party, r, text})
}

func (w *world) noLine(o *Operation) {
	switch text, down := w.down(history.RoleAPIServer, o.Node, "", o.Began); {
	case !w.logged[o.Node]:
		o.gap(APIServer, NoLog, "the history has no line of the API server of "+o.Node+" about envelopes: it logs them at verbosity 6 (--vmodule=envelope=6), or its log was not followed")
	case down:
		o.gap(APIServer, Cut, text+": the line may be lost")
	case w.atEdge(o.Began):
		o.gap(APIServer, Cut, "the recording began or ended about then")
	default:
		o.gap(APIServer, Missing, "the API server of "+o.Node+" logged other operations and not this one")
	}
}

func (w *world) noCall(o *Operation) {
	fault := w.faultAt(o.Node, o.KeyID, o.Began)
	switch text, down := w.down(history.RolePlugin, o.Node, o.KeyID, o.Began); {
	case !w.journaled[o.Node]:
		o.gap(Plugin, NoLog, "the history has no journal of a plugin of "+o.Node)
	case fault != "":
		o.gap(Plugin, Fault, "the fault "+fault+" was in force")
	case down:
		o.gap(Plugin, Down, text)
	case w.atEdge(o.Began):
		o.gap(Plugin, Cut, "the recording began or ended about then")
	default:
		o.gap(Plugin, Missing, "no plugin of "+o.Node+" has a call with this uid")
	}
}

func (w *world) noRecord(o *Operation) {
	text, down := w.down(history.RoleRemoteKMS, "", "", o.Began)
	switch {
	case !w.kms:
		o.gap(RemoteKMS, NoLog, "the history has no record of a remote KMS: the plugin has none, or its journal was not followed")
	case !o.OK:
		o.gap(RemoteKMS, Refused, "the plugin failed the call before its KMS answered: "+o.Error)
	case down:
		o.gap(RemoteKMS, Down, text)
	case w.atEdge(o.Began):
		o.gap(RemoteKMS, Cut, "the recording began or ended about then")
	default:
		o.gap(RemoteKMS, Missing, "the KMS recorded other operations and none with this uid: the plugin passed on another one, or none")
	}
}

// likely is the call in whose time something without a uid falls, "" if that is not exactly one.
func (t *Trace) likely(o Operation) string {
	found := ""
	for _, c := range t.Operations {
		for _, h := range c.Hops {
			if h.Party != Plugin || c.UID == "" || c.Op != o.Op || c.Node != o.Node || o.KeyID != "" && c.KeyID != o.KeyID || !covers(h, o.Began) {
				continue
			}
			if found != "" {
				return ""
			}
			found = c.UID
		}
	}
	return found
}

func covers(h Hop, t time.Time) bool {
	return !t.Before(h.Began.Add(-slack)) && !t.After(h.ended().Add(slack))
}

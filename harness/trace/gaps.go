package trace

import (
	"fmt"
	"slices"
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
		o.gap(o.Hops[0].Party, cause{true, NoUID, fmt.Sprintf("it carried no uid at the %s: an older API server, or a party that does not pass it on", o.Hops[0].Party)})
		return
	case has[Plugin] > 1 || has[RemoteKMS] > 1 || has[APIServer] > 1:
		o.gap(o.Hops[0].Party, cause{true, UIDReused, fmt.Sprintf("more than one operation has this uid: %d lines of the API server, %d calls, %d records of the KMS", has[APIServer], has[Plugin], has[RemoteKMS])})
	}
	edge := cause{w.atEdge(o.Began), Cut, "the recording began or ended about then"}
	if text, down := w.down(history.RoleAPIServer, o.Node, "", o.Began); has[APIServer] == 0 {
		o.gap(APIServer, cause{!w.logged[o.Node], NoLog, "the history has no line of the API server of " + o.Node + " about envelopes: it logs them at verbosity 6 (--vmodule=envelope=6), or its log was not followed"},
			cause{down, Cut, text + ": the line may be lost"}, edge,
			cause{true, Missing, "the API server of " + o.Node + " logged other operations and not this one"})
	}
	if text, down := w.down(history.RolePlugin, o.Node, o.KeyID, o.Began); has[Plugin] == 0 {
		fault := w.faultAt(o.Node, o.KeyID, o.Began)
		o.gap(Plugin, cause{!w.journaled[o.Node], NoLog, "the history has no journal of a plugin of " + o.Node},
			cause{fault != "", Fault, "the fault " + fault + " was in force"}, cause{down, Down, text}, edge,
			cause{true, Missing, "no plugin of " + o.Node + " has a call with this uid"})
	}
	if text, down := w.down(history.RoleRemoteKMS, "", "", o.Began); has[RemoteKMS] == 0 && has[Plugin] > 0 {
		o.gap(RemoteKMS, cause{!w.kms, NoLog, "the history has no record of a remote KMS: the plugin has none, or its journal was not followed"},
			cause{!o.OK, Refused, "the plugin failed the call before its KMS answered: " + o.Error}, cause{down, Down, text}, edge,
			cause{true, Missing, "the KMS recorded other operations and none with this uid: the plugin passed on another one, or none"})
	}
}

// cause of a gap, if it is one.
type cause struct {
	is     bool
	reason Reason
	text   string
}

// gap has the first of the causes.
func (o *Operation) gap(party string, causes ...cause) {
	c := causes[slices.IndexFunc(causes, func(c cause) bool { return c.is })]
	o.Gaps = append(o.Gaps, Gap{party, c.reason, c.text})
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

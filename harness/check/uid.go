package check

import (
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func uid() Invariant {
	return Invariant{
		ID:        "UID",
		Statement: "every Encrypt and Decrypt carries a non-empty uid, unique per operation, and can be followed API server → plugin → KMS",
		Source:    "Names that must not be confused",
		Judge:     judgeUID,
	}
}

// Hops of an envelope operation; the plugin's own is its journal.
const (
	hopAPIServer = "kube-apiserver"
	hopRemoteKMS = "remote-kms"
)

// hop is one operation as one party saw it.
type hop struct {
	at          time.Time
	seq         int64
	op, uid     string
	node, keyID string
	ok          bool
}

func judgeUID(v *Facts) (f Finding) {
	calls, hops := hops(v)
	seen := map[string]hop{}
	for _, c := range calls {
		f.JudgedAt(c.at, c.at)
		bad := func(what, allowed string) {
			f.Violate(Violation{At: c.at, Seq: c.seq, Node: c.node, KeyID: c.keyID, Seen: c.op + " of plugin " + c.node + "/" + c.keyID + " " + what, Allowed: allowed})
		}
		before, twice := seen[c.uid]
		switch {
		case c.uid == "":
			bad("without a uid", "a non-empty uid")
		case twice:
			bad("with the uid "+quoted(c.uid)+" of event "+number(before.seq), "a uid of its own")
		}
		seen[c.uid] = c
	}
	for _, name := range []string{hopAPIServer, hopRemoteKMS} {
		followHops(v, &f, calls, hops[name], name)
	}
	judgeNamed(v, &f)
	return f
}

// named: a line that names a request for a secret names the object that it is about, by the same words as the storage key.
func judgeNamed(v *Facts, f *Finding) {
	for n := range v.events {
		e := &v.events[n]
		if e.Kind != history.KindEnvelope || e.Envelope.Hop != hopAPIServer || !oneSecret(e.Envelope.For) {
			continue
		}
		f.JudgedAt(e.At, e.At)
		of := e.Envelope.For
		want := "/secrets/" + of.Namespace + "/" + of.Name
		if of.Name == "" && strings.Contains(e.Envelope.Object, want) || of.Name != "" && strings.HasSuffix(e.Envelope.Object, want) {
			continue
		}
		f.Violate(Violation{At: e.At, Seq: e.Seq, Node: e.Envelope.Node, Seen: "kube-apiserver logged the uid " + quoted(e.Envelope.UID) + " with the object " + quoted(e.Envelope.Object) +
			", and the request " + of.Verb + " " + of.Resource + " " + of.Namespace + "/" + of.Name, Allowed: "namespace and name of the object that it was for"})
	}
}

// oneSecret says whether a request is for one secret; others may touch objects that they do not name.
func oneSecret(r history.EnvelopeRequest) bool {
	switch r.Verb {
	case "get", "create", "update", "patch", "delete":
		return r.Resource == "secrets" && r.Group == ""
	}
	return false
}

func hops(v *Facts) (calls []hop, others map[string][]hop) {
	others = map[string][]hop{}
	for n := range v.events {
		e := &v.events[n]
		switch {
		case e.Kind == history.KindCall && e.Call.Method != "Status":
			c := e.Call
			calls = append(calls, hop{at: c.Began, seq: e.Seq, op: strings.ToLower(c.Method), uid: c.UID, node: c.Node, keyID: c.KeyID, ok: c.Outcome == history.CallOK})
		case e.Kind == history.KindEnvelope && e.Envelope.Op == "use": // many objects share the uid of an Encrypt, perhaps of long ago
		case e.Kind == history.KindEnvelope:
			n := e.Envelope
			others[n.Hop] = append(others[n.Hop], hop{at: e.At, seq: e.Seq, op: strings.ToLower(n.Op), uid: n.UID, node: n.Node, keyID: n.KeyID, ok: n.OK})
		}
	}
	return calls, others
}

// follow matches the plugins' calls with another party's hops by uid, in both directions. It asks only where that
// party recorded this operation of this node at all, away from the edges of the recording, and for what succeeded.
func followHops(v *Facts, f *Finding, calls, hops []hop, party string) {
	byUID, recorded := map[string]bool{}, map[string]bool{}
	for _, h := range hops {
		byUID[h.op+" "+h.uid] = true
		recorded[h.op+" "+h.node], recorded[h.op+" "] = true, true
	}
	inCalls := map[string]bool{}
	for _, c := range calls {
		inCalls[c.op+" "+c.uid] = true
		if !c.ok || c.uid == "" || !recorded[c.op+" "+c.node] || !insideRun(v, c.at) || shaken(v, party, c) {
			continue
		}
		f.JudgedAt(c.at, c.at)
		if !byUID[c.op+" "+c.uid] {
			f.Violate(Violation{At: c.at, Seq: c.seq, Node: c.node, KeyID: c.keyID, Seen: c.op + " with uid " + quoted(c.uid) + " is not in the records of " + party, Allowed: "the same uid at every hop"})
		}
	}
	for _, h := range hops {
		if !h.ok || !insideRun(v, h.at) || len(calls) == 0 || shaken(v, party, h) || barred(v, h) || givenUp(h, calls) {
			continue
		}
		f.JudgedAt(h.at, h.at)
		if !inCalls[h.op+" "+h.uid] {
			f.Violate(Violation{At: h.at, Seq: h.seq, Node: h.node, Seen: party + " recorded " + h.op + " with uid " + quoted(h.uid) + ", no plugin's journal has it", Allowed: "the same uid at every hop"})
		}
	}
}

// edge is how near the ends of a recording, or the death of a process, a record of the other party may be missing.
const edge = 2 * time.Second

func insideRun(v *Facts, t time.Time) bool {
	return span{v.complete.from.Add(edge), v.complete.to.Add(-edge)}.has(t)
}

// shaken: the party's or the plugin's process stopped about then, and its last records may be lost.
func shaken(v *Facts, party string, h hop) bool {
	roles := []string{history.RolePlugin, history.RoleAPIServer, history.RoleAggregatedAPIServer}
	if party == hopRemoteKMS {
		roles = []string{history.RolePlugin, history.RoleRemoteKMS}
	}
	near := span{h.at.Add(-edge), h.at.Add(edge)}
	for _, role := range roles {
		for _, p := range v.processes.ofRole(role) {
			if (p.node == h.node || p.node == "" || h.node == "") && v.processes.in(p, procDown, procPaused, procStarting).touches(near) {
				return true
			}
		}
	}
	return false
}

// barred: a fault that no call can tell of, because none arrives, was in force at a plugin of the node about then.
func barred(v *Facts, h hop) bool {
	near := span{h.at.Add(-edge), h.at.Add(edge)}
	for p, t := range v.plugins.all {
		if (p.node == h.node || h.node == "") && (h.keyID == "" || p.keyID == h.keyID) && t.opaque.touches(near) {
			return true
		}
	}
	return false
}

// besideText is how far apart the Decrypts of one list of an API server's may be.
const besideText = 500 * time.Millisecond

// givenUp: an API server that reads many objects has several of them decrypted at the same time, and gives up the others when one fails:
// also those that it has written to its log and not sent yet.
func givenUp(h hop, calls []hop) bool {
	if h.op != "decrypt" {
		return false
	}
	for _, c := range calls {
		if c.op == h.op && !c.ok && c.node == h.node && c.at.Sub(h.at).Abs() <= besideText {
			return true
		}
	}
	return false
}

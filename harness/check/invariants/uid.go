package invariants

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// hop is one operation as one party saw it: the API server in its log, the plugin in its journal, the remote KMS in its
// own.
type hop struct {
	at          time.Time
	seq         int64
	op, uid     string
	node, keyID string
	ok          bool
}

// kube-apiserver makes a new uid for each call of a plugin, and logs it with the object.
func judgeUID(v *facts.Facts) (f Finding) {
	calls, hops := readHops(v)
	seen := map[string]hop{}
	for _, c := range calls {
		f.JudgedAt(c.at, c.at)
		bad := func(what, allowed string) {
			f.Violate(Violation{At: c.at, Seq: c.seq, Node: c.node, KeyID: c.keyID, Seen: c.op + " of plugin " + c.node + "/" + c.keyID + " " + what, Allowed: allowed})
		}
		key := c.uid
		if c.node == history.RolePreflight { // no rule gives each call of a pre-flight program a uid of its own: OpenShift's has one for Encrypt and Decrypt
			key = c.node + " " + c.op + " " + c.uid
		}
		before, twice := seen[key]
		switch {
		case c.uid == "":
			bad("without a uid", "a non-empty uid")
		case twice:
			bad(fmt.Sprintf("with the uid %s of event %d", text.Quoted(c.uid), before.seq), "a uid of its own")
		}
		seen[key] = c
	}
	for _, party := range []string{history.KubeAPIServer, history.RoleRemoteKMS} {
		followHops(v, &f, calls, hops[party], party)
	}
	judgeNamed(v, &f)
	return f
}

// judgeNamed: a line that names a request for a secret names the object that it is about, by the same words as the storage key.
func judgeNamed(v *facts.Facts, f *Finding) {
	for e := range v.Each(history.KindEnvelope) {
		of, object := e.Envelope.For, e.Envelope.Object
		if e.Envelope.Hop != history.KubeAPIServer || !oneSecret(of) {
			continue
		}
		f.JudgedAt(e.At, e.At)
		want := "/secrets/" + of.Namespace + "/" + of.Name
		if of.Name == "" && strings.Contains(object, want) || of.Name != "" && strings.HasSuffix(object, want) {
			continue
		}
		f.Violate(Violation{At: e.At, Seq: e.Seq, Node: e.Envelope.Node, Seen: "kube-apiserver logged the uid " + text.Quoted(e.Envelope.UID) + " with the object " + text.Quoted(object) +
			", and the request " + of.Verb + " " + of.Resource + " " + of.Namespace + "/" + of.Name, Allowed: "namespace and name of the object that it was for"})
	}
}

// oneSecret reports whether a request is for one secret; others may touch objects that they do not name.
func oneSecret(r history.EnvelopeRequest) bool {
	return r.Resource == "secrets" && r.Group == "" && slices.Contains([]string{"get", "create", "update", "patch", "delete"}, r.Verb)
}

func readHops(v *facts.Facts) (calls []hop, others map[string][]hop) {
	others = map[string][]hop{}
	for e := range v.Each(history.KindCall, history.KindEnvelope) {
		switch c, n := e.Call, e.Envelope; {
		case e.Kind == history.KindCall && c.Method != "Status":
			calls = append(calls, hop{at: c.Began, seq: e.Seq, op: strings.ToLower(c.Method), uid: c.UID, node: c.Node, keyID: c.KeyID, ok: c.Outcome == history.CallOK})
		case e.Kind == history.KindEnvelope && n.Op != "use": // many objects share the uid of an Encrypt, perhaps of long ago
			others[n.Hop] = append(others[n.Hop], hop{at: e.At, seq: e.Seq, op: strings.ToLower(n.Op), uid: n.UID, node: n.Node, keyID: n.KeyID, ok: n.OK})
		}
	}
	return calls, others
}

// followHops matches the plugins' calls with another party's hops by uid, in both directions. It asks only where that
// party recorded this operation of this node at all, away from the edges of the recording, and for what succeeded.
func followHops(v *facts.Facts, f *Finding, calls, hops []hop, party string) {
	byUID, recorded, inCalls := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, h := range hops {
		byUID[h.op+" "+h.uid] = true
		recorded[h.op+" "+h.node], recorded[h.op+" "] = true, true
	}
	inside := v.Period.Grow(-edge, -edge)
	for _, c := range calls {
		inCalls[c.op+" "+c.uid] = true
		if !c.ok || c.uid == "" || !recorded[c.op+" "+c.node] || !inside.Contains(c.at) || shaken(v, party, c) {
			continue
		}
		f.JudgedAt(c.at, c.at)
		if !byUID[c.op+" "+c.uid] {
			f.Violate(Violation{At: c.at, Seq: c.seq, Node: c.node, KeyID: c.keyID, Seen: c.op + " with uid " + text.Quoted(c.uid) + " is not in the records of " + party, Allowed: "the same uid at every hop"})
		}
	}
	for _, h := range hops {
		if !h.ok || !inside.Contains(h.at) || len(calls) == 0 || shaken(v, party, h) || barred(v, h) || givenUp(h, calls) {
			continue
		}
		f.JudgedAt(h.at, h.at)
		if !inCalls[h.op+" "+h.uid] {
			f.Violate(Violation{At: h.at, Seq: h.seq, Node: h.node, Seen: party + " recorded " + h.op + " with uid " + text.Quoted(h.uid) + ", no plugin's journal has it", Allowed: "the same uid at every hop"})
		}
	}
}

// edge is how near the ends of a recording, or the death of a process, a record of the other party may be missing: logs
// are buffered, and a recorder that follows a file starts and ends a little late.
const edge = 2 * time.Second

func (h hop) near() span.Span { return span.New(h.at, h.at).Grow(edge, edge) }

// shaken: the party's or the plugin's process stopped about then, and its last records may be lost.
func shaken(v *facts.Facts, party string, h hop) bool {
	roles := []string{history.RolePlugin, history.RoleAPIServer, history.RoleAggregatedAPIServer}
	if party == history.RoleRemoteKMS {
		roles = []string{history.RolePlugin, history.RoleRemoteKMS}
	}
	for p := range v.Processes.States {
		if slices.Contains(roles, p.Role) && (p.Node == h.node || p.Node == "" || h.node == "") && v.Processes.While(p, facts.Down, facts.Paused, facts.Starting).Overlaps(h.near()) {
			return true
		}
	}
	return false
}

// barred: a fault that no call can tell of, because none arrives, was in force at a plugin of the node about then.
func barred(v *facts.Facts, h hop) bool {
	return slices.ContainsFunc(v.Plugins.All, func(t *facts.Plugin) bool {
		return (t.Node == h.node || h.node == "") && (h.keyID == "" || t.KeyID == h.keyID) && t.Opaque.Overlaps(h.near())
	})
}

// concurrent is how far apart the Decrypts of one list of an API server may be. A list decrypts its items with several
// workers.
const concurrent = 500 * time.Millisecond

// givenUp: an API server that reads many objects has several of them decrypted at the same time, and gives up the others when one fails:
// also those that it has written to its log and not sent yet.
func givenUp(h hop, calls []hop) bool {
	return h.op == "decrypt" && slices.ContainsFunc(calls, func(c hop) bool {
		return c.op == h.op && !c.ok && c.node == h.node && c.at.Sub(h.at).Abs() <= concurrent
	})
}

package scenario

import (
	"regexp"
)

// Lifecycles are the values of topology.lifecycle, the default first.
func Lifecycles() []string { return []string{LifecycleDirect, LifecycleOperator} }

// SocketSchemes are the values of topology.sockets, the default first.
func SocketSchemes() []string { return []string{SocketsByKey, SocketsByHash} }

// hashForm is config.Hash of operator: what a plugin goes by whose socket is named by its configuration.
var hashForm = regexp.MustCompile(`^[2-7]*[a-z][a-z2-7]*$`)

const hashLength = 8

// hashed says whether plugins go by the hashes of their configurations.
func (v *validation) hashed() bool { return v.scenario.Topology.Sockets == SocketsByHash }

// notHash says why no plugin can go by a name, or nothing.
func notHash(name string) string {
	if len(name) == hashLength && hashForm.MatchString(name) {
		return ""
	}
	return "keyID " + quote(name) + " cannot be with sockets by hash, expected the hash of a configuration, 8 letters and digits, or an expression over all of reports"
}

// operated checks a topology with an operator: what it does not do yet is refused here, for all backends alike.
func (v *validation) operated(t Topology, at place) {
	named := v.keyword(at.at("sockets"), "sockets", t.Sockets, SocketSchemes())
	if !t.ByOperator() {
		if named && t.Sockets != SocketsByKey {
			v.add(at.at("sockets"), "sockets by %s with lifecycle %s, expected it with operator only: others are named by the keyIDs that are written", t.Sockets, quote(t.Lifecycle))
		}
		return
	}
	if v.scenario.Operator != Operators()[0] {
		v.add(place{"spec", "operator"}, "operator is %s with lifecycle operator, expected %s: no other API server has one yet", quote(v.scenario.Operator), Operators()[0])
	}
	if t.Start == StartStopped {
		v.add(at.at("start"), "start is stopped with lifecycle operator, expected running: it begins with clear text, so there is nothing to start cold")
	}
}

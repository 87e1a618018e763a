package scenario

import (
	"regexp"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Lifecycles are the values of topology.lifecycle, the default first.
func Lifecycles() []string { return []string{LifecycleDirect, LifecycleOperator} }

// SocketSchemes are the values of topology.sockets, the default first.
func SocketSchemes() []string { return []string{SocketsByKey, SocketsByHash} }

// hashForm is config.Hash of harness/lifecycle: what a plugin goes by whose socket is named by its configuration.
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

// Outcomes of writing the APIServer configuration.
const (
	OutcomeAccepted = "accepted" // by the API; whether the operator takes it, its conditions say
	OutcomeRefused  = "refused"
)

func apiServerOutcomes() []string { return []string{OutcomeAccepted, OutcomeRefused} }

// Sections are the providers' fields beside type: KMS, in the form of the API.
func Sections() []string { return []string{"vault", "aws", "azure", "gcp", "thales"} }

func sections() (fields []field) {
	for _, name := range Sections() {
		s := mapping(name)
		s.open = scalar(kindAny) // the provider's own settings, which may be wrong on purpose
		fields = append(fields, optional(name, s).says("settings of the provider, in the form of the API; required ones of vault that are left out are filled in"))
	}
	return fields
}

// operated checks a topology with an operator: what it does not do yet is refused here, for all backends alike.
func (v *validation) operated(t Topology, at place) {
	named := v.word(at.at("sockets"), "sockets", t.Sockets, SocketSchemes())
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

// lifecycle says which actions go with who switches the encryption.
func (v *validation) lifecycle(a Action, at place) {
	operated := v.scenario.Topology.ByOperator()
	role := a.Process.Role
	switch {
	case !operated && a.Verb == VerbAPIServer:
		v.add(at, "apiserver without an operator that acts upon it, expected lifecycle: operator in the topology, or encryption instead")
	case !operated && role == history.RoleOperator:
		v.add(at.at("role"), "role operator, and there is none, expected lifecycle: operator in the topology")
	case operated && a.Verb == VerbEncryption:
		v.add(at, "encryption with lifecycle operator, expected apiserver: the operator switches, nobody else")
	case operated && a.Verb == VerbNode && len(v.scenario.Topology.Further()) > 0:
		v.add(at, "node with lifecycle operator and further API servers, expected the nodes of the topology: their operators cannot set up pods on others")
	case operated && a.Verb == VerbData && a.Text("op") == DataMigrate:
		v.add(at.at("op"), "op migrate with lifecycle operator, expected write or verify: the operator migrates")
	}
}

// apiServer checks what is written. Values may be wrong on purpose: that is for the operator to find.
func (v *validation) apiServer(a Action, at place) {
	v.word(at.at("type"), "type", a.Text("type"), encryptionTypes())
	if expect, written := a.Params["expect"]; written {
		text, _ := expect.(string)
		v.word(at.at("expect"), "expect", text, apiServerOutcomes())
	}
	var written []string
	for _, name := range Sections() {
		if _, there := a.Params[name]; there {
			written = append(written, name)
		}
	}
	switch kms := a.Text("type") == "KMS"; {
	case kms && len(written) == 0:
		v.add(at, "type KMS without a provider, expected one of %s", oneOf(Sections()))
	case kms && len(written) > 1:
		v.add(at.at(written[1]), "%s beside %s, expected one provider", written[1], written[0])
	case !kms && len(written) > 0:
		v.add(at.at(written[0]), "%s with type %s, expected it with KMS only", written[0], quote(a.Text("type")))
	}
}

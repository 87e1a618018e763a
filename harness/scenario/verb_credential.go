package scenario

import "strings"

// VerbCredential lets the credential of a reporter expire, renews or rotates it.
const VerbCredential Verb = "credential"

// Modes of Credential.
const (
	CredentialExpire = "expire"
	CredentialRenew  = "renew"
	CredentialRotate = "rotate"
)

// Credential lets the credential of a node's reporter expire, renews or rotates it.
type Credential struct{ Node, Mode string }

// Verb implements Action.
func (*Credential) Verb() Verb { return VerbCredential }

func (c *Credential) fields() []field {
	return append(ofTarget(required("node", nodeField(&c.Node)).doc("whose reporter")), required("mode", keywordField(&c.Mode, CredentialExpire, CredentialRenew, CredentialRotate)).doc(
		"expire: the reporter is restarted with one that expires soon, and has expired when the step is over; renew: a new one is in its file; "+
			"rotate: as a kubelet does, a new one is in its file 70 s before the old one expires, which it has when the step is over"))
}

func (c *Credential) target([]string) string { return strings.TrimSpace("credential " + c.Node) }

// Describe implements Action.
func (c *Credential) Describe() string {
	return "credential of the reporter" + ofNode(c.Node) + ": " + c.Mode
}

func (c *Credential) harm() string { return harmOf(c) }

// Undo implements Undoable.
func (c *Credential) Undo() Action {
	if c.Mode != CredentialExpire {
		return nil
	}
	return &Credential{Node: c.Node, Mode: CredentialRenew}
}

func (c *Credential) check(v *validation, at place) {
	if v.scenario.Topology.ByOperator() {
		v.add(at, "credential with lifecycle operator, expected none: its operator starts reporters itself")
	}
}

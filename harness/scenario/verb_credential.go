package scenario

import (
	"slices"
	"strings"
)

// Modes of Credential, as reporterModes and providerModes have them.
const (
	CredentialExpire  = "expire"
	CredentialRenew   = "renew"
	CredentialRotate  = "rotate"
	CredentialChange  = "change"
	CredentialRewrite = "rewrite"
	CredentialRemove  = "remove"
	CredentialRestore = "restore"
	CredentialRevoke  = "revoke"
)

func reporterModes() []string {
	return []string{CredentialExpire, CredentialRenew, CredentialRotate}
}

// credentialModes are those that a reporter's credential has in a topology: a legacy token does not expire, and can be revoked.
func (t Topology) credentialModes() []string {
	if t.ReporterToken == TokenSecret {
		return []string{CredentialRevoke, CredentialRenew}
	}
	return reporterModes()
}

func providerModes() []string {
	return []string{CredentialChange, CredentialRewrite, CredentialRemove, CredentialRestore, CredentialExpire, CredentialRevoke, CredentialRenew}
}

// Credential lets the credential of a node's reporter expire, renews or rotates it, or changes that of the plugins.
type Credential struct {
	Node string `yaml:"node,omitempty" target:"true" refers:"nodes" without:"provider" why:"all plugins have the same Secret" description:"whose reporter"`
	// Provider is for the Secret with which plugins log in at their KMS. It is the cluster's, without a node.
	Provider bool   `yaml:"provider,omitempty" target:"true" description:"the Secret of the plugins, beside an operator"`
	Mode     string `yaml:"mode" required:"true" enum:"expire,renew,rotate,change,rewrite,remove,restore,revoke" undo:"expire=renew,revoke=renew,remove=restore" description:"of a reporter: expire: it is restarted with one that expires soon, and has expired when the step is over; renew: a new one is in its file; rotate: as a kubelet does, a new one is in its file 70 s before the old one expires, which it has when the step is over; revoke: the Secret of its legacy token is deleted (reporterToken: secret). Of a provider: change: the Secret has other content; rewrite: the same content is written again; remove: it is deleted; restore: it is there again, as it was; expire: the KMS refuses log-ins with its content, and leases go on to their end; revoke: leases end, too; renew: log-ins with it are accepted again"`
}

func (c *Credential) Target([]string) string {
	if c.Provider {
		return "credential of the plugins"
	}
	return strings.TrimSpace("credential " + c.Node)
}

func (*Credential) About() string {
	return "lets the credential of a reporter expire, or renews it, or changes that of the plugins"
}

func (c *Credential) Harm() string {
	if c.Provider {
		return strings.Replace(harmOf(c), "credential", "credential-of-plugins", 1)
	}
	return harmOf(c)
}

func (c *Credential) Validate(v Validation) {
	operated := v.Scenario().Topology.ByOperator()
	switch {
	case c.Provider && !operated:
		v.Add("provider", "provider without an operator that gives plugins their credentials, expected lifecycle: operator in the topology")
	case c.Provider && c.Mode == CredentialRotate:
		v.Add("mode", "mode %s with provider, expected %s", c.Mode, oneOf(providerModes()))
	case !c.Provider && operated:
		v.Add("", "credential with lifecycle operator, expected provider: true: its operator starts reporters itself")
	case !c.Provider && c.Node == "":
		v.Add("", "credential without a node, expected one, all, or provider: true")
	case !c.Provider && slices.Contains(append(reporterModes(), providerModes()...), c.Mode) && !slices.Contains(v.Scenario().Topology.credentialModes(), c.Mode):
		v.Add("mode", "mode %s of a reporter, expected %s", c.Mode, oneOf(v.Scenario().Topology.credentialModes()))
	case c.Provider && c.Mode != CredentialRenew && slices.Contains(logInOps(), c.Mode) && v.Scenario().Topology.Profile == "":
		v.Add("mode", "mode %s without a provider, expected profile in the topology: other plugins do not log in", c.Mode)
	case c.Provider && slices.Contains(logInOps(), c.Mode) && len(v.Scenario().Topology.Aggregated()) > 0:
		v.Add("mode", "mode %s with several API servers, expected kube-apiserver alone: at the KMS the plugins of a node have the same name", c.Mode)
	}
}

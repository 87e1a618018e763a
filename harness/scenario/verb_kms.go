package scenario

import "slices"

// Rotate makes a new KEK in the remote KMS. Each plugin notices with its own lag.
type Rotate struct {
	Lag Lag `yaml:"lag,omitempty"`
	// KeyID is nothing to rotate while no API server has a plugin of it.
	KeyID string `yaml:"keyID,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$" expected:"letters, digits and dashes, at most 63" description:"the KEK behind this keyID alone; default all"`
}

// ClusterWide implements ClusterWide: there is one remote KMS.
func (*Rotate) ClusterWide() {}

func (*Rotate) Harm() string { return "rotate" }

func (*Rotate) About() string {
	return "a new KEK in the remote KMS; each plugin notices with its own lag"
}

// KMS changes the state of a KEK, or a node's access to the remote KMS.
type KMS struct {
	Op string `yaml:"op" required:"true" enum:"disable,enable,delete,recreate,deny,allow,cut,restore,expire,revoke,renew,throttle" undo:"disable=enable,deny=allow,cut=restore,throttle=restore,expire=renew,revoke=renew"`
	// Node loses or regains access; empty: all nodes.
	Node string `yaml:"node,omitempty" refers:"nodes" without:"op=disable,enable,delete,recreate" why:"a KEK has one state for all nodes; cut and deny are per node"`
	// KEK is a version, of those that a remote key can have (fakeplugin/keyring); 0: the newest.
	KEK int `yaml:"kek,omitempty" minimum:"1" maximum:"10000" with:"op=disable,enable,delete"`
	// Older are all versions but the newest.
	Older   bool   `yaml:"older,omitempty" with:"op=disable,enable,delete" without:"kek" why:"it is one of them" description:"all versions but the newest, as Vault's min_decryption_version refuses them"`
	Failure string `yaml:"failure,omitempty" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" with:"op=expire,revoke" description:"with expire and revoke: failure of the profile in whose words log-ins are refused; default the one that the profile names"`
	// Credential is empty for all.
	Credential string `yaml:"credential,omitempty" enum:"appRole,certificate" with:"op=expire,revoke" description:"with expire and revoke: the credential that no log-in is accepted with, the AppRole of the first log-in or the certificate that it brought; default both"`
	// LogIns and Calls are limits of each plugin; 0: none.
	LogIns int `yaml:"logIns,omitempty" minimum:"1" maximum:"10000" with:"op=throttle" description:"with throttle: log-ins in a minute, of each plugin"`
	Calls  int `yaml:"calls,omitempty" minimum:"1" maximum:"10000" with:"op=throttle" description:"with throttle: Encrypts and Decrypts in a second, of each plugin"`
}

// Operations of the verb kms.
const (
	// The state of a KEK.
	KMSDisable = "disable"
	KMSEnable  = "enable"
	KMSDelete  = "delete"
	// KMSRecreate deletes the key with all its versions, and makes another under its name.
	KMSRecreate = "recreate"
	// The access of a node to the remote KMS.
	KMSDeny    = "deny"
	KMSAllow   = "allow"
	KMSCut     = "cut"
	KMSRestore = "restore"
	// The credential that a plugin logs in with. Expired: no log-in is accepted, and the lease that there is goes on to its end. Revoked: that ends, too.
	KMSExpire = "expire"
	KMSRevoke = "revoke"
	KMSRenew  = "renew"
	// KMSThrottle limits log-ins and calls, of each plugin.
	KMSThrottle = "throttle"
)

func logInOps() []string { return []string{KMSExpire, KMSRevoke, KMSRenew} }

func (*KMS) About() string {
	return "changes a KEK, or a node's access to the remote KMS"
}

func (k *KMS) Validate(v Validation) {
	if k.Op == KMSThrottle && k.LogIns+k.Calls == 0 {
		v.Add("op", "op throttle without a limit, expected logIns or calls")
	}
	if !slices.Contains(logInOps(), k.Op) {
		return
	}
	switch profile := v.Scenario().Topology.Profile; {
	case profile == "":
		v.Add("op", "op %s without a provider, expected profile in the topology: other plugins do not log in", k.Op)
	case k.Failure != "" && v.parser.Faults != nil:
		for _, p := range v.parser.Faults.CheckFault(ProviderFailure, "", map[string]any{"profile": profile, "failure": k.Failure}) {
			v.Add("failure", "%s", p.What)
		}
	}
}
